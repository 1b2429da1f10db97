"""Models whose CUDA packages lie in tests/data/emulation: what each computes is told by running it eagerly on the CPU.

``MODELS`` maps a name to the class, a function that makes sample inputs, and the dynamic sizes. Weights and samples
follow from the seed 0, in this order: the model, then the inputs.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.export import Dim

B = Dim("b", min=2, max=1024)
N = Dim("n", min=2, max=512)
r = torch.randn


def ids(*shape, high):
    return torch.randint(0, high, shape)


MODELS = {}


def model(name, args, dyn=None):
    def deco(cls):
        MODELS[name] = (cls, args, dyn)
        return cls

    return deco


@model("pointwise", lambda: (r(10, 33), r(10, 33)), ({0: B}, {0: B}))
class _(nn.Module):
    def forward(self, x, y):
        return torch.tanh(x) * torch.sigmoid(y) + torch.erf(x) * torch.rsqrt(y * y + 1)


@model("static_pointwise", lambda: (r(1000, 77),))
class _(nn.Module):
    def forward(self, x):
        return F.gelu(x) + 1


@model("softmax", lambda: (r(12, 70),), ({0: B},))
class _(nn.Module):
    def forward(self, x):
        return torch.softmax(x * 2, -1)


@model("softmax_long", lambda: (r(4, 5000),), ({0: B},))
class _(nn.Module):
    def forward(self, x):
        return torch.log_softmax(x, -1)


@model("layernorm", lambda: (r(6, 9, 48),), ({0: B},))
class _(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = nn.LayerNorm(48)
        nn.init.normal_(self.n.weight)
        nn.init.normal_(self.n.bias)

    def forward(self, x):
        return F.relu(self.n(x))


@model("split_sum", lambda: (r(300000),))
class _(nn.Module):
    def forward(self, x):
        return (x * x).sum(), x.max()


@model("mean_cols", lambda: (r(700, 24),), ({0: B},))
class _(nn.Module):
    def forward(self, x):
        return x.mean(0), x.var(0)


@model("embedding", lambda: (ids(5, 7, high=100),), ({0: B},))
class _(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(100, 24)

    def forward(self, i):
        return self.e(i) * 2


@model("embedding_linear", lambda: (ids(6, high=100), r(6, 16)), ({0: B}, {0: B}))
class _(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(100, 16)
        self.l = nn.Linear(16, 8)

    def forward(self, i, x):
        return F.relu(self.l(self.e(i) + x))


@model("gather", lambda: (r(8, 40), ids(8, 5, high=40)), ({0: B}, {0: B}))
class _(nn.Module):
    def forward(self, x, i):
        return torch.gather(x, 1, i) + 1


@model("index_select", lambda: (r(50, 12), ids(9, high=50)), (None, {0: N}))
class _(nn.Module):
    def forward(self, x, i):
        return x[i].sum(-1)


@model(
    "scatter", lambda: (r(8, 20), torch.rand(8, 20).argsort(1)[:, :6].contiguous(), r(8, 6)), ({0: B}, {0: B}, {0: B})
)
class _(nn.Module):
    def forward(self, x, i, v):
        return torch.scatter(x, 1, i, v)


@model("scatter_add", lambda: (r(30, 4), ids(64, high=30), r(64, 4)), (None, {0: N}, {0: N}))
class _(nn.Module):
    def forward(self, x, i, v):
        return torch.index_add(x, 0, i, v)


@model("index_put", lambda: (r(30, 4), ids(10, high=30), r(10, 4)), (None, {0: N}, {0: N}))
class _(nn.Module):
    def forward(self, x, i, v):
        return torch.index_put(x, (i,), v, accumulate=True) * 3


@model("cat", lambda: (r(7, 10), r(7, 20)), ({0: B}, {0: B}))
class _(nn.Module):
    def forward(self, x, y):
        return torch.cat([x, y * 2, x + 1], 1)


@model("pad", lambda: (r(3, 4, 10, 11),), ({0: B},))
class _(nn.Module):
    def forward(self, x):
        return F.pad(x, (1, 2, 3, 0), mode="reflect") + 1


@model("pool", lambda: (r(2, 3, 16, 18),), ({0: B},))
class _(nn.Module):
    def forward(self, x):
        return F.max_pool2d(F.relu(x), 2), F.avg_pool2d(x, 3, 2, 1)


@model("upsample", lambda: (r(2, 3, 8, 9),), ({0: B},))
class _(nn.Module):
    def forward(self, x):
        return F.interpolate(x, scale_factor=2, mode="bilinear"), F.interpolate(x, scale_factor=2)


@model("sort", lambda: (r(9, 50),), ({0: B},))
class _(nn.Module):
    def forward(self, x):
        return tuple(torch.sort(x * 2, -1))


@model("cumsum", lambda: (r(9, 50),), ({0: B},))
class _(nn.Module):
    def forward(self, x):
        return torch.cumsum(torch.exp(x), -1), torch.argmax(x, -1)


@model("mlp", lambda: (r(5, 32),), ({0: B},))
class _(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(32, 64)
        self.b = nn.Linear(64, 8)

    def forward(self, x):
        return torch.sigmoid(self.b(F.relu(self.a(x))))


@model("bmm", lambda: (r(4, 6, 8), r(4, 8, 5)), ({0: B}, {0: B}))
class _(nn.Module):
    def forward(self, x, y):
        return torch.relu(torch.bmm(x, y)) + 1


@model("attention", lambda: (r(2, 9, 32),), ({0: B},))
class _(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(32, 96)
        self.o = nn.Linear(32, 32)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.q(x).view(b, t, 3, 4, 8).permute(2, 0, 3, 1, 4)
        a = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5, -1)
        return self.o((a @ v).transpose(1, 2).reshape(b, t, c))


@model("two_sizes", lambda: (r(6, 10), r(14, 10)), ({0: B}, {0: N}))
class _(nn.Module):
    def forward(self, x, y):
        return (x[:, None, :] - y[None]).abs().sum(-1)


@model("half", lambda: (r(8, 40).half(),), ({0: B},))
class _(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1) * 3


@model("bfloat16", lambda: (r(8, 40).bfloat16(), r(8, 40).bfloat16()), ({0: B}, {0: B}))
class _(nn.Module):
    def forward(self, x, y):
        return F.silu(x) * y


@model("int8", lambda: (torch.randint(-100, 100, (8, 40), dtype=torch.int8), r(40)), ({0: B}, None))
class _(nn.Module):
    def forward(self, x, c):
        return (x.float() * c).clamp(-5, 5).to(torch.int8), x.to(torch.int32) // 3


@model("mutate", lambda: (r(8, 40), r(8, 40)), ({0: B}, {0: B}))
class _(nn.Module):
    def forward(self, x, y):
        x.add_(y)
        return x * 2


@model("transposed", lambda: (r(24, 30),), ({0: B},))
class _(nn.Module):
    def forward(self, x):
        return x.t().contiguous() + x.sum(1), x.t() @ x


@model("conv", lambda: (r(2, 3, 16, 16),), ({0: B},))
class _(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 6, 3, padding=1)
        self.n = nn.BatchNorm2d(6)
        self.eval()

    def forward(self, x):
        return F.relu(self.n(self.c(x)))


@model("where_arange", lambda: (r(9, 30), torch.tensor(4)), ({0: B}, None))
class _(nn.Module):
    def forward(self, x, n):
        return torch.where(torch.arange(30, device=x.device) < n, x, torch.log(x.abs()))


@model("positions", lambda: (ids(4, 12, high=50), ids(4, high=30)), ({0: B}, {0: B}))
class _(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(50, 8)
        self.p = nn.Embedding(30, 8)

    def forward(self, i, p):
        return F.layer_norm(self.e(i) + self.p(p)[:, None], (8,))


@model("computed_index", lambda: (r(40, 6), r(11)), (None, {0: N}))
class _(nn.Module):
    def forward(self, x, v):
        i = (v.abs() * 10).to(torch.int64)
        j = torch.cumsum(i, 0)
        return x[j % 40] + x[i]


@torch.library.custom_op("emu::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


@model("custom_op", lambda: (r(9, 50),), ({0: B},))
class _(nn.Module):
    def forward(self, x):
        return twice(x + 1) * 3


@model("topk", lambda: (r(9, 50),), ({0: B},))
class _(nn.Module):
    def forward(self, x):
        return torch.topk(x * 2, 3)[0] + 1


@model("user_triton", lambda: (r(9, 50),), ({0: B},))
class _(nn.Module):
    """``make_packages`` compiles it with a Triton kernel of the user's in place of ``scaled``."""

    scaled = staticmethod(lambda x: x * 3.0)

    def forward(self, x):
        return self.scaled(x + 1) * 2


@model("half_user", lambda: (r(9, 70), r(70), r(120)), ({0: B}, None, None))
class _(nn.Module):
    """Likewise, with kernels that call functions, wait for one another, and go on behind the view that they get."""

    @staticmethod
    def rms(x, w):
        return (x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6) * w).half()

    total = staticmethod(lambda x: x.sum().reshape(1))
    halves = staticmethod(lambda x: x[:60] * x[60:])

    def forward(self, x, w, both):
        return self.rms(x, w), self.total(x), self.halves(both)


@model("mm_template", lambda: (r(37, 48),), ({0: B},))
class _(nn.Module):
    """Its matrix product is a Triton template: see ``CONFIG``."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(48, 64)

    def forward(self, x):
        return F.relu(self.a(x))


@model("encoder", lambda: (r(2, 9, 32),), ({0: B},))
class _(nn.Module):
    """A layer as in most models of text: attention, two normalisations, a wide middle."""

    def __init__(self):
        super().__init__()
        self.n, self.m = nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.up, self.down = nn.Linear(32, 128), nn.Linear(128, 32)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.n(x)).view(b, t, 3, 4, 8).permute(2, 0, 3, 1, 4)
        mask = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
        scores = (q @ k.transpose(-1, -2) / 8**0.5).masked_fill(~mask, -1e4)
        x = x + self.out((torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.m(x))))


@model("residual", lambda: (r(2, 8, 12, 12),), ({0: B},))
class _(nn.Module):
    """A block as in most models of images: convolutions, normalisations, a shortcut, pooling, a classifier."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(8, 16, 3, 2, 1), nn.Conv2d(16, 16, 3, 1, 1)
        self.n, self.m = nn.BatchNorm2d(16), nn.GroupNorm(4, 16)
        self.s, self.c = nn.Conv2d(8, 16, 1, 2), nn.Linear(16, 10)
        self.eval()

    def forward(self, x):
        y = F.relu(self.m(self.b(F.relu(self.n(self.a(x))))) + self.s(x))
        return self.c(y.mean((2, 3)))


@model("decoder_step", lambda: (ids(3, 1, high=60), torch.tensor(5), r(3, 2, 16, 8), r(3, 2, 16, 8)), None)
class _(nn.Module):
    """One step of generation: an id is looked up, keys and values are put into a cache at a position of the data."""

    def __init__(self):
        super().__init__()
        self.e, self.qkv, self.o = nn.Embedding(60, 16), nn.Linear(16, 48), nn.Linear(16, 60)

    def forward(self, i, at, keys, values):
        x = self.e(i)
        q, k, v = self.qkv(x).view(3, 1, 3, 2, 8).permute(2, 0, 3, 1, 4)
        keys = keys.index_copy(2, at.view(1), k)
        values = values.index_copy(2, at.view(1), v)
        seen = torch.arange(16, device=x.device) <= at
        weights = torch.softmax((q @ keys.transpose(-1, -2) / 8**0.5).masked_fill(~seen, -1e4), -1)
        return self.o((weights @ values).transpose(1, 2).reshape(3, 1, 16)), keys, values


# How some are compiled.
CONFIG = {"mm_template": {"max_autotune_gemm": True, "max_autotune_gemm_backends": "TRITON"}}


def made(name):
    """The model with its weights, and a sample of its inputs."""
    cls, args, _ = MODELS[name]
    torch.manual_seed(0)
    model = cls().eval()
    return model, args()


def flat(value):
    """Tensors in order."""
    return [value] if isinstance(value, torch.Tensor) else [one for part in value for one in flat(part)]
