# syntax=docker/dockerfile:1
# slim (no torch): check, inspect, classify, triton, compat and all else that executes nothing.
#   docker build --target slim -t aotidoctor .
#   docker run --rm -v "$PWD:/work:ro" aotidoctor check model.pt2 --inputs sample.pt
# torch: also run, compare and localize, with a C++ compiler and the CPU build of torch.
#   docker build --target torch -t aotidoctor:torch .
ARG PYTHON=3.12

FROM python:${PYTHON}-slim-bookworm AS wheel
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY aotidoctor ./aotidoctor
COPY playbooks ./playbooks
RUN python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:${PYTHON}-slim-bookworm AS slim
COPY --from=wheel /wheels /wheels
RUN python -m pip install --no-cache-dir /wheels/*.whl \
    && rm -rf /wheels \
    && useradd --create-home --uid 10001 doctor
USER doctor
WORKDIR /work
ENTRYPOINT ["aotidoctor"]
CMD ["--help"]

FROM slim AS torch
ARG TORCH=2.13.0
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ gdb \
    && rm -rf /var/lib/apt/lists/*
RUN python -m pip install --no-cache-dir --index-url "${TORCH_INDEX}" "torch==${TORCH}" \
    && python -m pip install --no-cache-dir numpy setuptools
USER doctor
