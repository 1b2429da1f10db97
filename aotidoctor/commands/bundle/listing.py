"""What a bundle holds, as a text for people."""

from __future__ import annotations

from aotidoctor.commands.bundle.make import Bundle


def listing(bundle: Bundle, *, place: str, map_place: str | None, dry: bool, brief: bool = False) -> str:
    """One line per member and per thing that was left out; ``brief``: what it is and how safe it is, alone."""
    what = "would be written" if dry else "written"
    lines = [f"{place}: {what}, {size_text(len(bundle.data))}, {len(bundle.members)} members"]
    if brief:
        return "\n".join([*lines, _privacy(bundle, map_place, dry=dry)]) + "\n"
    lines.append("")
    for member in bundle.members:
        hidden = f"{member.redactions} hidden" if member.redactions else "NOT REDACTED" if member.raw else ""
        lines.append(f"  {size_text(len(member.data)):>8}  {hidden:<12}  {member.name}")
    if bundle.absent:
        lines += ["", "left out:"]
        lines += [f"  {item.name}: {item.reason}" for item in bundle.absent]
    lines += ["", _privacy(bundle, map_place, dry=dry)]
    return "\n".join(lines) + "\n"


def size_text(size: int) -> str:
    """``512 B``, ``1.5 KB``, ``2.0 MB``."""
    if size < 1000:
        return f"{size} B"
    return f"{size / 1000:.1f} KB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


def _privacy(bundle: Bundle, map_place: str | None, *, dry: bool) -> str:
    if bundle.manifest.get("redaction") is None:
        return "not redacted, and not tested for leaks: --no-redact"
    kept = f"; the originals are in {map_place}, which is not sent" if map_place and not dry else ""
    count = f"{len(bundle.table)} placeholder{'' if len(bundle.table) == 1 else 's'}"
    return f"{count}{kept}. Leak test: no private word found in any encoding tried."
