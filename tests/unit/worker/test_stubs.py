"""The stubs' machine code, executed by an emulator: so that of another machine is tested here, too."""

from __future__ import annotations

import struct

import pytest

from aotidoctor.worker.call_hooks.slots import HEADER_BYTES, RECORDS, RING_BYTES, STACK_AT, stub_machine

unicorn = pytest.importorskip("unicorn", reason="the emulator unicorn is not installed")
from unicorn import arm64_const as arm  # noqa: E402
from unicorn import x86_const as x86  # noqa: E402

CODE, RING, TARGET, CALLBACK, STACK = 0x10000, 0x4000000, 0x20000, 0x30000, 0x8000000
X86_ARGUMENTS = [x86.UC_X86_REG_RDI, x86.UC_X86_REG_RSI, x86.UC_X86_REG_RDX, x86.UC_X86_REG_RCX, x86.UC_X86_REG_R8,
                 x86.UC_X86_REG_R9, x86.UC_X86_REG_RAX, x86.UC_X86_REG_R10]  # fmt: skip
X86_OTHERS = [x86.UC_X86_REG_RBX, x86.UC_X86_REG_RBP, x86.UC_X86_REG_R12, x86.UC_X86_REG_R15]
X86_VECTORS = [getattr(x86, f"UC_X86_REG_XMM{n}") for n in range(8)]
ARM_ARGUMENTS = [getattr(arm, f"UC_ARM64_REG_X{n}") for n in range(9)]
ARM_OTHERS = [arm.UC_ARM64_REG_X19, arm.UC_ARM64_REG_X28, arm.UC_ARM64_REG_X29, arm.UC_ARM64_REG_X30]
ARM_VECTORS = [getattr(arm, f"UC_ARM64_REG_Q{n}") for n in range(8)]


class Machine:
    """One emulated processor with code, ring, stack, and known values in its registers."""

    def __init__(self, name):
        self.x86 = name == "x86_64"
        self.stubs = stub_machine(name)
        kind = (unicorn.UC_ARCH_X86, unicorn.UC_MODE_64) if self.x86 else (unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        self.uc = unicorn.Uc(*kind)
        for address, size in ((CODE, 0x1000), (TARGET, 0x1000), (CALLBACK, 0x1000), (STACK - 0x10000, 0x20000)):
            self.uc.mem_map(address, size)
        self.uc.mem_map(RING, (RING_BYTES + 0xFFF) & ~0xFFF)
        self.stack = x86.UC_X86_REG_RSP if self.x86 else arm.UC_ARM64_REG_SP
        self.kept = X86_ARGUMENTS + X86_OTHERS if self.x86 else ARM_ARGUMENTS + ARM_OTHERS
        self.vectors = X86_VECTORS if self.x86 else ARM_VECTORS
        if not self.x86:
            # Vector registers trap until they are permitted.
            self.uc.reg_write(arm.UC_ARM64_REG_CPACR_EL1, 3 << 20)
        # A call has pushed its return address on x86: the stack is 8 off sixteen there.
        self.top = STACK - 8 if self.x86 else STACK
        self.uc.mem_write(self.top, struct.pack("<4Q", 0xAAAA, 0xBBBB, 0xCCCC, 0xDDDD))

    def fill(self):
        self.uc.reg_write(self.stack, self.top)
        for number, register in enumerate(self.kept):
            self.uc.reg_write(register, 0x1000_0000_0000 + number * 0x1111)
        for number, register in enumerate(self.vectors):
            self.uc.reg_write(register, (number + 1) << 100 | 7)

    def state(self):
        return [self.uc.reg_read(register) for register in [*self.kept, *self.vectors, self.stack]]

    def run(self, code):
        self.uc.mem_write(CODE, code)
        self.fill()
        before = self.state()
        self.uc.emu_start(CODE, TARGET)
        pc = x86.UC_X86_REG_RIP if self.x86 else arm.UC_ARM64_REG_PC
        assert self.uc.reg_read(pc) == TARGET
        return before, self.state()

    def ring(self):
        return struct.unpack("<Q", self.uc.mem_read(RING, 8))[0]

    def record(self, index):
        return struct.unpack("<IIQ", self.uc.mem_read(RING + HEADER_BYTES + 16 * index, 16))


@pytest.fixture(params=["x86_64", "aarch64"])
def machine(request):
    return Machine(request.param)


def test_a_trace_stub_writes_a_record_and_changes_nothing(machine):
    code = machine.stubs.trace_stub(ring=RING, number=41, target=TARGET)
    before, after = machine.run(code)
    assert before == after
    assert machine.ring() == 1
    number, argument, _ = machine.record(0)
    assert (number, argument) == (41, before[1] & 0xFFFFFFFF)


def test_the_ring_wraps_round(machine):
    machine.uc.mem_write(RING, struct.pack("<Q", RECORDS - 1))
    code = machine.stubs.trace_stub(ring=RING, number=7, target=TARGET)
    machine.run(code)
    machine.run(code)
    assert machine.ring() == RECORDS + 1
    assert machine.record(RECORDS - 1)[0] == 7
    assert machine.record(0)[0] == 7


def test_time_goes_on(machine):
    code = machine.stubs.trace_stub(ring=RING, number=1, target=TARGET)
    machine.run(code)
    machine.run(code)
    assert machine.record(1)[2] >= machine.record(0)[2]


def test_a_watch_stub_hands_over_the_arguments_and_restores_all(machine):
    seen = {}

    def callback(uc, address, size, _):
        if address != CALLBACK:
            return
        first, second = (X86_ARGUMENTS if machine.x86 else ARM_ARGUMENTS)[:2]
        saved = uc.reg_read(second)
        seen["number"] = uc.reg_read(first) & 0xFFFFFFFF
        seen["words"] = struct.unpack("<6Q", uc.mem_read(saved, 48))
        seen["stack"] = struct.unpack("<Q", uc.mem_read(saved + STACK_AT, 8))[0]
        seen["aligned"] = (uc.reg_read(machine.stack) + (8 if machine.x86 else 0)) % 16
        # A real callback leaves these as it likes.
        for register in machine.kept[:8] if machine.x86 else machine.kept[:9]:
            uc.reg_write(register, 0xDEAD)
        for register in machine.vectors:
            uc.reg_write(register, 0)

    machine.uc.mem_write(CALLBACK, b"\xc3" if machine.x86 else bytes.fromhex("c0035fd6"))
    machine.uc.hook_add(unicorn.UC_HOOK_CODE, callback)
    code = machine.stubs.watch_stub(callback=CALLBACK, number=9, target=TARGET)
    before, after = machine.run(code)
    assert seen["number"] == 9
    assert list(seen["words"]) == before[:6]
    assert seen["aligned"] == 0
    # Arguments on the stack begin behind the return address, where there is one.
    assert struct.unpack("<Q", machine.uc.mem_read(seen["stack"], 8))[0] == (0xBBBB if machine.x86 else 0xAAAA)
    assert before == after
