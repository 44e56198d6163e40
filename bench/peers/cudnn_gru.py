"""Times of cuDNN's GRU (reset-after) by every algorithm: 50 steps of one layer on 64 inputs that are all given beforehand.

    python cudnn_gru.py            # needs PyTorch for CUDA, which brings cuDNN 9

A line has the median of 30 runs between two events on a stream, the same as a replayed graph, and the length of the outputs:
algorithms and types of one size have the same weights.
"""
import ctypes as c
import glob
import os
import site

import torch

STEPS, INPUTS, RUNS = 50, 64, 30
ALGORITHMS = {"standard": 0, "persist static": 1, "persist dynamic": 2, "persist static small h": 3}
TYPES = {"f32": (0, torch.float32), "f16": (2, torch.float16), "bf16": (9, torch.bfloat16)}
MATH = {"default": 0, "tensor": 1, "conversion": 2, "fma": 3}

found = [p for folder in [*site.getsitepackages(), site.getusersitepackages()]
         for p in glob.glob(os.path.join(folder, "nvidia", "cudnn*", "lib", "libcudnn.so.9"))]
lib = c.CDLL(found[0] if found else "libcudnn.so.9")
lib.cudnnGetVersion.restype = c.c_size_t
lib.cudnnGetErrorString.restype = c.c_char_p
Pointer, Size = c.c_void_p, c.c_size_t


def call(name, *arguments):
    status = getattr(lib, "cudnn" + name)(*arguments)
    if status:
        raise RuntimeError(f"cudnn{name}: {lib.cudnnGetErrorString(status).decode()}")


def made(kind):
    descriptor = Pointer()
    call("Create" + kind, c.byref(descriptor))
    return descriptor


def at(tensor):
    return Pointer(tensor.data_ptr())


torch.zeros(1, device="cuda")
stream, handle = torch.cuda.Stream(), Pointer()
call("Create", c.byref(handle))
call("SetStream", handle, Pointer(stream.cuda_stream))


def median(work):
    times = []
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
        stream.synchronize()
        for _ in range(RUNS):
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            first.record(stream)
            work()
            last.record(stream)
            last.synchronize()
            times.append(first.elapsed_time(last) * 1e3)
    return sorted(times)[RUNS // 2]


def timed(algorithm, kind, math, hidden, batch, members=1):
    """Microseconds of a stream's calls and of a graph, and the outputs' length. Members run one after the other."""
    code, dtype = TYPES[kind]
    dropout, rnn = made("DropoutDescriptor"), made("RNNDescriptor")
    call("SetDropoutDescriptor", dropout, handle, c.c_float(0), None, Size(0), c.c_ulonglong(0))
    gru, double_bias = 3, 2
    call("SetRNNDescriptor_v8", rnn, ALGORITHMS[algorithm], gru, double_bias, 0, 0, code, 0, MATH[math], INPUTS, hidden,
         hidden, 1, dropout, 0)
    lengths = (c.c_int * batch)(*[STEPS] * batch)
    on_device = torch.full((batch,), STEPS, dtype=torch.int32, device="cuda")
    x_form, y_form, h_form = made("RNNDataDescriptor"), made("RNNDataDescriptor"), made("TensorDescriptor")
    for form, width in ((x_form, INPUTS), (y_form, hidden)):
        call("SetRNNDataDescriptor", form, code, 1, STEPS, batch, width, lengths, None)
    call("SetTensorNdDescriptor", h_form, code, 3, (c.c_int * 3)(1, batch, hidden), (c.c_int * 3)(batch * hidden, hidden, 1))
    if algorithm == "persist dynamic":
        call("BuildRNNDynamic", handle, rnn, batch)
    size, work, reserve = Size(), Size(), Size()
    call("GetRNNWeightSpaceSize", handle, rnn, c.byref(size))
    call("GetRNNTempSpaceSizes", handle, rnn, 0, x_form, c.byref(work), c.byref(reserve))
    draws = torch.Generator("cuda").manual_seed(1)
    scale = (2 / (INPUTS + hidden)) ** 0.5
    weights = [((torch.rand(size.value // dtype.itemsize, device="cuda", generator=draws) * 2 - 1) * scale).to(dtype)
               for _ in range(members)]
    x = torch.randn(STEPS, batch, INPUTS, device="cuda", generator=draws).to(dtype)
    y = torch.zeros(STEPS, batch, hidden, device="cuda", dtype=dtype)
    h, last = torch.zeros(2, batch, hidden, device="cuda", dtype=dtype)
    scratch = torch.empty(max(work.value, 1), dtype=torch.uint8, device="cuda")

    def run():
        for w in weights:
            call("RNNForward", handle, rnn, 0, at(on_device), x_form, at(x), y_form, at(y), h_form, at(h), at(last), h_form,
                 None, None, size, at(w), work, at(scratch), Size(0), None)

    by_calls, graph = median(run), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        run()
    return by_calls, median(graph.replay), float(y.float().norm())


def report(algorithm, kind, math, hidden, batch, members=1):
    what = f"H={hidden} batch={batch} members={members} {kind} {math} {algorithm}"
    try:
        by_calls, by_graph, length = timed(algorithm, kind, math, hidden, batch, members)
        print(f"{what}: {by_calls:.1f} us by calls, {by_graph:.1f} us as a graph, |y| {length:.6g}", flush=True)
    except RuntimeError as error:
        print(f"{what}: {error}", flush=True)


def main():
    print("cuDNN", lib.cudnnGetVersion(), "torch", torch.__version__, torch.cuda.get_device_name(0))
    for hidden in (256, 512, 1024):
        for batch in (1, 8):
            for kind, math in (("f32", "default"), ("f32", "fma"), ("f32", "conversion"), ("f16", "tensor"), ("bf16", "tensor")):
                for algorithm in ALGORITHMS:
                    report(algorithm, kind, math, hidden, batch)
        for algorithm in ALGORITHMS:
            report(algorithm, "f32", "default", hidden, 1, 5)


main()
