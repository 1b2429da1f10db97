// (beginning cut)
const char* mps_lib_0_source = (R"MTL(
    // Headers of Metal, 1,180 lines, are left out here.
    [[max_total_threads_per_threadgroup(16)]]
    kernel void generated_kernel(
        device float* out_ptr2,
        constant float* in_ptr0,
        constant float* in_ptr1,
        constant long& xnumel,
        uint2 thread_pos [[thread_position_in_grid]],
        uint2 group_pos [[thread_position_in_threadgroup]]
    ) {
        auto xindex = thread_pos.x;
        auto r0_index = thread_pos.y;
        int r0_1 = r0_index;
        int x0 = xindex;
        threadgroup float tmp_acc_0[1];
        threadgroup float tmp_acc_1[1];
        auto tmp0 = in_ptr0[r0_1 + 16*x0];
        auto tmp3 = in_ptr1[r0_1];
        auto tmp1 = 0;
        auto tmp2 = c10::metal::max(static_cast<decltype(tmp0+tmp1)>(tmp0), static_cast<decltype(tmp0+tmp1)>(tmp1));
        auto tmp4 = tmp2 + tmp3;
        auto tmp5 = c10::metal::threadgroup_max(tmp_acc_0, static_cast<float>(tmp4), r0_index * 1, 16);
        auto tmp6 = tmp4 - tmp5;
        auto tmp7 = metal::precise::exp(tmp6);
        auto tmp8 = c10::metal::threadgroup_sum(tmp_acc_1, tmp7, r0_index * 1, 16);
        auto tmp9 = tmp7 / tmp8;
        out_ptr2[r0_1 + 16*x0] = static_cast<float>(tmp9);
    }
)MTL");

const char* mps_lib_1_source = (R"MTL(
    // Headers of Metal, 1,180 lines, are left out here.
    [[max_total_threads_per_threadgroup(1024)]]
    kernel void generated_kernel(
        device float* out_ptr0,
        constant float* in_ptr0,
        constant float* in_ptr1,
        constant long& r0_numel,
        uint2 thread_pos [[thread_position_in_grid]],
        uint2 group_pos [[thread_position_in_threadgroup]]
    ) {
        auto xindex = thread_pos.x;
        auto r0_index = thread_pos.y;
        int x0 = xindex;
        threadgroup float tmp_acc_0[32];
        float tmp_acc_1 = 0;
        for(auto r0__cnt = 0; r0__cnt < static_cast<int>(metal::floor(static_cast<float>(0.999023437500000 + 0.000976562500000000*r0_numel))); ++r0__cnt) {
            int r0__linear_idx = 1024 * r0__cnt + r0_index;
            if (r0__linear_idx >= r0_numel) break;
            int r0_1 = r0__linear_idx;
            auto tmp0 = in_ptr0[x0 + 16*r0_1];
            auto tmp3 = in_ptr1[x0];
            auto tmp1 = 0;
            auto tmp2 = c10::metal::max(static_cast<decltype(tmp0+tmp1)>(tmp0), static_cast<decltype(tmp0+tmp1)>(tmp1));
            auto tmp4 = tmp2 + tmp3;
            tmp_acc_1 += tmp4;
        }
        auto tmp5 = c10::metal::threadgroup_sum(tmp_acc_0, tmp_acc_1, r0_index * 1, metal::min(static_cast<decltype(1024+r0_numel)>(1024), static_cast<decltype(1024+r0_numel)>(r0_numel)));
        if (r0_index == 0) out_ptr0[x0] = static_cast<float>(tmp5);
    }
)MTL");

const char* mps_lib_2_source = (R"MTL(
    // Headers of Metal, 1,180 lines, are left out here.
    kernel void generated_kernel(
        device float* out_ptr0,
        constant long* in_ptr0,
        constant float* in_ptr1,
        constant float* in_ptr2,
        constant long& ks0,
        uint xindex [[thread_position_in_grid]]
    ) {
        int x1 = c10::metal::floor_divide(xindex, 16);
        int x0 = (xindex) % (16);
        int x2 = xindex;
        auto tmp0 = in_ptr0[x1];
        auto tmp10 = in_ptr2[x0];
        auto tmp1 = ks0;
        auto tmp2 = static_cast<long>(tmp1);
        auto tmp3 = tmp0 + tmp2;
        auto tmp4 = tmp0 < 0;
        auto tmp5 = tmp4 ? tmp3 : static_cast<decltype(tmp3)>(tmp0);
        if ((tmp5 < 0 || tmp5 >= ks0)) return;
        auto tmp7 = in_ptr1[x0 + 16*tmp5];
        auto tmp8 = 0;
        auto tmp9 = c10::metal::max(static_cast<decltype(tmp7+tmp8)>(tmp7), static_cast<decltype(tmp7+tmp8)>(tmp8));
        auto tmp11 = tmp9 + tmp10;
        out_ptr0[x2] = static_cast<float>(tmp11);
    }
)MTL");
CACHE_TORCH_DTYPE(float32);
CACHE_TORCH_DEVICE(mps);
namespace torch::aot_inductor {
namespace {
class AOTInductorModelKernels : public AOTInductorModelKernelsBase {
  public:
    CUfunction mps_lib_0{nullptr};
    CUfunction mps_lib_1{nullptr};
    CUfunction mps_lib_2{nullptr};
};
}  // namespace



AOTInductorModel::AOTInductorModel(std::shared_ptr<ConstantMap> constants_map,
                                   std::shared_ptr<std::vector<ConstantHandle>> constants_array,
                                   const std::string& device_str,
                                   std::optional<std::string> cubin_dir)
    : AOTInductorModelBase(5,
                           3,
                           0,
                           device_str,
                           std::move(cubin_dir),
                           true) {
    inputs_info_[0].name = "arg0_1";
    inputs_info_[1].name = "arg1_1";
    inputs_info_[2].name = "arg2_1";
    inputs_info_[3].name = "arg3_1";
    inputs_info_[4].name = "arg4_1";
    update_constants_map(std::move(constants_map));
    update_constants_array(std::move(constants_array));
    in_spec_ = R"()";
    out_spec_ = R"()";
    outputs_info_[0].name = "output0";
    outputs_info_[1].name = "output1";
    outputs_info_[2].name = "output2";
    this->kernels_ = std::make_unique<AOTInductorModelKernels>();
}

std::unordered_map<std::string, AtenTensorHandle> AOTInductorModel::const_run_impl(
    DeviceStreamType stream,
    AOTIProxyExecutorHandle proxy_executor,
    bool initialization
) {

    if (!initialization) {
        std::cerr << "[WARNING] Calling constant_folding in model, but compiled with config: "
                  << "aot_inductor.use_runtime_constant_folding=False\n";
    }
    return {};
}
} // namespace torch::aot_inductor
using namespace torch::aot_inductor;

namespace torch::aot_inductor {

AOTIMetalKernelFunctionHandle get_mps_lib_0_handle() {
    static auto kernel_handle = []() {
        AOTIMetalShaderLibraryHandle lib_handle = nullptr;
        AOTIMetalKernelFunctionHandle kern_handle = nullptr;

        aoti_torch_mps_create_shader_library(mps_lib_0_source, &lib_handle);
        aoti_torch_mps_get_kernel_function(lib_handle, "generated_kernel", &kern_handle);

        // RAII wrapper with custom deleter
        auto lib_deleter = [](AOTIMetalShaderLibraryHandle h) {
            if (h) aoti_torch_mps_delete_shader_library(h);
        };

        using LibDeleter = decltype(lib_deleter);
        using LibPtr = std::unique_ptr<AOTIMetalShaderLibraryOpaque, LibDeleter>;

        // Return pair of kernel handle and library smart pointer for cleanup
        return std::make_pair(kern_handle, LibPtr(lib_handle, lib_deleter));
    }();
    return kernel_handle.first;
}

AOTIMetalKernelFunctionHandle get_mps_lib_1_handle() {
    static auto kernel_handle = []() {
        AOTIMetalShaderLibraryHandle lib_handle = nullptr;
        AOTIMetalKernelFunctionHandle kern_handle = nullptr;

        aoti_torch_mps_create_shader_library(mps_lib_1_source, &lib_handle);
        aoti_torch_mps_get_kernel_function(lib_handle, "generated_kernel", &kern_handle);

        // RAII wrapper with custom deleter
        auto lib_deleter = [](AOTIMetalShaderLibraryHandle h) {
            if (h) aoti_torch_mps_delete_shader_library(h);
        };

        using LibDeleter = decltype(lib_deleter);
        using LibPtr = std::unique_ptr<AOTIMetalShaderLibraryOpaque, LibDeleter>;

        // Return pair of kernel handle and library smart pointer for cleanup
        return std::make_pair(kern_handle, LibPtr(lib_handle, lib_deleter));
    }();
    return kernel_handle.first;
}

AOTIMetalKernelFunctionHandle get_mps_lib_2_handle() {
    static auto kernel_handle = []() {
        AOTIMetalShaderLibraryHandle lib_handle = nullptr;
        AOTIMetalKernelFunctionHandle kern_handle = nullptr;

        aoti_torch_mps_create_shader_library(mps_lib_2_source, &lib_handle);
        aoti_torch_mps_get_kernel_function(lib_handle, "generated_kernel", &kern_handle);

        // RAII wrapper with custom deleter
        auto lib_deleter = [](AOTIMetalShaderLibraryHandle h) {
            if (h) aoti_torch_mps_delete_shader_library(h);
        };

        using LibDeleter = decltype(lib_deleter);
        using LibPtr = std::unique_ptr<AOTIMetalShaderLibraryOpaque, LibDeleter>;

        // Return pair of kernel handle and library smart pointer for cleanup
        return std::make_pair(kern_handle, LibPtr(lib_handle, lib_deleter));
    }();
    return kernel_handle.first;
}

void AOTInductorModel::_const_run_impl(
    std::vector<AtenTensorHandle>& output_handles,
    DeviceStreamType stream,
    AOTIProxyExecutorHandle proxy_executor
) {}

AOTI_NOINLINE static void check_input_0(
    AtenTensorHandle* input_handles
) {
    ConstantHandle arg0_1 = ConstantHandle(input_handles[0]);
    int32_t arg0_1_dtype;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(arg0_1, &arg0_1_dtype));

    int32_t arg0_1_expected_dtype = aoti_torch_dtype_float32();
    if (arg0_1_expected_dtype != arg0_1_dtype) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched dtype, "
           << "expected: " << arg0_1_expected_dtype << "(at::kFloat), "
           << "but got: " << arg0_1_dtype << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
    auto arg0_1_size = arg0_1.sizes();

    if (16 != arg0_1_size[0]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched dim value at 0, "
           << "expected: 16, " << "but got: " << arg0_1_size[0]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }

    if (8 != arg0_1_size[1]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched dim value at 1, "
           << "expected: 8, " << "but got: " << arg0_1_size[1]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
    auto arg0_1_stride = arg0_1.strides();

    if (8 != arg0_1_stride[0]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched stride value at 0, "
           << "expected: 8, " << "but got: " << arg0_1_stride[0]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }

    if (1 != arg0_1_stride[1]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched stride value at 1, "
           << "expected: 1, " << "but got: " << arg0_1_stride[1]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
}

AOTI_NOINLINE static void check_input_1(
    AtenTensorHandle* input_handles
) {
    ConstantHandle arg1_1 = ConstantHandle(input_handles[1]);
    int32_t arg1_1_dtype;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(arg1_1, &arg1_1_dtype));

    int32_t arg1_1_expected_dtype = aoti_torch_dtype_float32();
    if (arg1_1_expected_dtype != arg1_1_dtype) {
        std::stringstream ss;
        ss << "input_handles[1]: unmatched dtype, "
           << "expected: " << arg1_1_expected_dtype << "(at::kFloat), "
           << "but got: " << arg1_1_dtype << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
    auto arg1_1_size = arg1_1.sizes();

    if (16 != arg1_1_size[0]) {
        std::stringstream ss;
        ss << "input_handles[1]: unmatched dim value at 0, "
           << "expected: 16, " << "but got: " << arg1_1_size[0]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
    auto arg1_1_stride = arg1_1.strides();

    if (1 != arg1_1_stride[0]) {
        std::stringstream ss;
        ss << "input_handles[1]: unmatched stride value at 0, "
           << "expected: 1, " << "but got: " << arg1_1_stride[0]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
}

AOTI_NOINLINE static void check_input_2(
    AtenTensorHandle* input_handles
) {
    ConstantHandle arg2_1 = ConstantHandle(input_handles[2]);
    int32_t arg2_1_dtype;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(arg2_1, &arg2_1_dtype));

    int32_t arg2_1_expected_dtype = aoti_torch_dtype_float32();
    if (arg2_1_expected_dtype != arg2_1_dtype) {
        std::stringstream ss;
        ss << "input_handles[2]: unmatched dtype, "
           << "expected: " << arg2_1_expected_dtype << "(at::kFloat), "
           << "but got: " << arg2_1_dtype << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
    auto arg2_1_size = arg2_1.sizes();

    if (16 != arg2_1_size[0]) {
        std::stringstream ss;
        ss << "input_handles[2]: unmatched dim value at 0, "
           << "expected: 16, " << "but got: " << arg2_1_size[0]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
    auto arg2_1_stride = arg2_1.strides();

    if (1 != arg2_1_stride[0]) {
        std::stringstream ss;
        ss << "input_handles[2]: unmatched stride value at 0, "
           << "expected: 1, " << "but got: " << arg2_1_stride[0]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
}

AOTI_NOINLINE static void check_input_3(
    AtenTensorHandle* input_handles
) {
    ConstantHandle arg3_1 = ConstantHandle(input_handles[3]);
    int32_t arg3_1_dtype;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(arg3_1, &arg3_1_dtype));

    int32_t arg3_1_expected_dtype = aoti_torch_dtype_float32();
    if (arg3_1_expected_dtype != arg3_1_dtype) {
        std::stringstream ss;
        ss << "input_handles[3]: unmatched dtype, "
           << "expected: " << arg3_1_expected_dtype << "(at::kFloat), "
           << "but got: " << arg3_1_dtype << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
    auto arg3_1_size = arg3_1.sizes();

    if (arg3_1_size[0] < 2) {
        std::stringstream ss;
        ss << "input_handles[3]: dim value is too small at 0, "
           << "expected it to be >= 2, " << "but got: "
           << arg3_1_size[0] << "\n";
        throw std::runtime_error(std::move(ss).str());
    }

    if (arg3_1_size[0] > 64) {
        std::stringstream ss;
        ss << "input_handles[3]: dim value is too large at 0, "
           << "expected to be <= 64, " << "but got: "
           << arg3_1_size[0] << "\n";
        throw std::runtime_error(std::move(ss).str());
    }

    if (8 != arg3_1_size[1]) {
        std::stringstream ss;
        ss << "input_handles[3]: unmatched dim value at 1, "
           << "expected: 8, " << "but got: " << arg3_1_size[1]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
    auto arg3_1_stride = arg3_1.strides();

    if (8 != arg3_1_stride[0]) {
        std::stringstream ss;
        ss << "input_handles[3]: unmatched stride value at 0, "
           << "expected: 8, " << "but got: " << arg3_1_stride[0]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }

    if (1 != arg3_1_stride[1]) {
        std::stringstream ss;
        ss << "input_handles[3]: unmatched stride value at 1, "
           << "expected: 1, " << "but got: " << arg3_1_stride[1]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
}

AOTI_NOINLINE static void check_input_4(
    AtenTensorHandle* input_handles
) {
    ConstantHandle arg4_1 = ConstantHandle(input_handles[4]);
    int32_t arg4_1_dtype;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(arg4_1, &arg4_1_dtype));

    int32_t arg4_1_expected_dtype = aoti_torch_dtype_int64();
    if (arg4_1_expected_dtype != arg4_1_dtype) {
        std::stringstream ss;
        ss << "input_handles[4]: unmatched dtype, "
           << "expected: " << arg4_1_expected_dtype << "(at::kLong), "
           << "but got: " << arg4_1_dtype << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
    auto arg4_1_size = arg4_1.sizes();

    if (3 != arg4_1_size[0]) {
        std::stringstream ss;
        ss << "input_handles[4]: unmatched dim value at 0, "
           << "expected: 3, " << "but got: " << arg4_1_size[0]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
    auto arg4_1_stride = arg4_1.strides();

    if (1 != arg4_1_stride[0]) {
        std::stringstream ss;
        ss << "input_handles[4]: unmatched stride value at 0, "
           << "expected: 1, " << "but got: " << arg4_1_stride[0]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
}

static bool _check_aoti_runtime_check_inputs_env() {
    const static char* env_var_value = getenv("AOTI_RUNTIME_CHECK_INPUTS");
    const static bool result = env_var_value != nullptr && env_var_value[0] != '0';
    return result;
}

AOTI_NOINLINE static void __check_inputs_outputs(
    AtenTensorHandle* input_handles,
    AtenTensorHandle* output_handles) {
    if (!_check_aoti_runtime_check_inputs_env()){
        return;
    }
    check_input_0(input_handles);
    check_input_1(input_handles);
    check_input_2(input_handles);
    check_input_3(input_handles);
    check_input_4(input_handles);
}

void AOTInductorModel::run_impl(
    AtenTensorHandle*
        input_handles, // array of input AtenTensorHandle; handles
                        // are stolen; the array itself is borrowed
    AtenTensorHandle*
        output_handles, // array for writing output AtenTensorHandle; handles
                        // will be stolen by the caller; the array itself is
                        // borrowed
    DeviceStreamType stream,
    AOTIProxyExecutorHandle proxy_executor
) {
    __check_inputs_outputs(input_handles, output_handles);
    auto inputs = steal_from_raw_handles_to_raii_handles(input_handles, 5);
    auto arg0_1 = std::move(inputs[0]);
    auto arg1_1 = std::move(inputs[1]);
    auto arg2_1 = std::move(inputs[2]);
    auto arg3_1 = std::move(inputs[3]);
    auto arg4_1 = std::move(inputs[4]);
    auto arg3_1_size = arg3_1.sizes();
    int64_t s77 = arg3_1_size[0];
    inputs.clear();
    [[maybe_unused]] auto& kernels = static_cast<AOTInductorModelKernels&>(*this->kernels_.get());
        if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(arg1_1, {16L, }, {1L, }, "input"); }
        if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(arg3_1, {s77, 8L}, {8L, 1L}, "input"); }
        if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(arg0_1, {16L, 8L}, {8L, 1L}, "input"); }
        const int64_t int_array_0[] = {s77, 16L};
        static constexpr int64_t int_array_1[] = {16L, 1L};
        AtenTensorHandle buf0_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_1, cached_torch_dtype_float32, cached_torch_device_type_mps, this->device_idx_, &buf0_handle));
        RAIIAtenTensorHandle buf0(buf0_handle);
        // Topologically Sorted Source Nodes: [linear], Original ATen: [aten.t, aten.addmm]
        static constexpr int64_t int_array_2[] = {8L, 16L};
        static constexpr int64_t int_array_3[] = {1L, 8L};
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_mps_addmm_out(buf0, arg1_1, arg3_1, wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(arg0_1, 2, int_array_2, int_array_3, 0L)), 1L, 1L));
        arg0_1.reset();
        arg1_1.reset();
        arg3_1.reset();
        if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(arg2_1, {16L, }, {1L, }, "input"); }
        AtenTensorHandle buf3_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_1, cached_torch_dtype_float32, cached_torch_device_type_mps, this->device_idx_, &buf3_handle));
        RAIIAtenTensorHandle buf3(buf3_handle);
        auto mps_lib_0_lambda_0 = [&](AOTIMetalKernelFunctionHandle handle) {
            aoti_torch_mps_start_encoding(handle);
            aoti_torch_mps_set_arg_tensor(handle, 0, buf3);
            aoti_torch_mps_set_arg_tensor(handle, 1, buf0);
            aoti_torch_mps_set_arg_tensor(handle, 2, arg2_1);
            aoti_torch_mps_set_arg_int(handle, 3, s77);
            {
                uint64_t mps_lib_0_threads_array[] = {static_cast<uint64_t>(s77), static_cast<uint64_t>(16L)};
                uint64_t mps_lib_0_group_size_array[] = {static_cast<uint64_t>(1), static_cast<uint64_t>(16L)};
                aoti_torch_mps_dispatch_array_with_group_size(handle, mps_lib_0_threads_array, 2, mps_lib_0_group_size_array, 2);
            }
        };

        std::function<void(AOTIMetalKernelFunctionHandle)> mps_lib_0_func_wrapper_0 = mps_lib_0_lambda_0;
        aoti_torch_mps_run_command_block(get_mps_lib_0_handle(), aoti_torch_mps_shared_callback, &mps_lib_0_func_wrapper_0);
        static constexpr int64_t int_array_4[] = {16L, };
        static constexpr int64_t int_array_5[] = {1L, };
        AtenTensorHandle buf4_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(1, int_array_4, int_array_5, cached_torch_dtype_float32, cached_torch_device_type_mps, this->device_idx_, &buf4_handle));
        RAIIAtenTensorHandle buf4(buf4_handle);
        auto mps_lib_1_lambda_1 = [&](AOTIMetalKernelFunctionHandle handle) {
            aoti_torch_mps_start_encoding(handle);
            aoti_torch_mps_set_arg_tensor(handle, 0, buf4);
            aoti_torch_mps_set_arg_tensor(handle, 1, buf0);
            aoti_torch_mps_set_arg_tensor(handle, 2, arg2_1);
            aoti_torch_mps_set_arg_int(handle, 3, s77);
            {
                uint64_t mps_lib_1_threads_array[] = {static_cast<uint64_t>(16L), static_cast<uint64_t>(std::min(static_cast<int64_t>(1024L), static_cast<int64_t>(s77)))};
                uint64_t mps_lib_1_group_size_array[] = {static_cast<uint64_t>(1), static_cast<uint64_t>(std::min(static_cast<int64_t>(1024L), static_cast<int64_t>(s77)))};
                aoti_torch_mps_dispatch_array_with_group_size(handle, mps_lib_1_threads_array, 2, mps_lib_1_group_size_array, 2);
            }
        };

        std::function<void(AOTIMetalKernelFunctionHandle)> mps_lib_1_func_wrapper_1 = mps_lib_1_lambda_1;
        aoti_torch_mps_run_command_block(get_mps_lib_1_handle(), aoti_torch_mps_shared_callback, &mps_lib_1_func_wrapper_1);
        if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(arg4_1, {3L, }, {1L, }, "input"); }
        static constexpr int64_t int_array_6[] = {3L, 16L};
        AtenTensorHandle buf5_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_6, int_array_1, cached_torch_dtype_float32, cached_torch_device_type_mps, this->device_idx_, &buf5_handle));
        RAIIAtenTensorHandle buf5(buf5_handle);
        auto mps_lib_2_lambda_2 = [&](AOTIMetalKernelFunctionHandle handle) {
            aoti_torch_mps_start_encoding(handle);
            aoti_torch_mps_set_arg_tensor(handle, 0, buf5);
            aoti_torch_mps_set_arg_tensor(handle, 1, arg4_1);
            aoti_torch_mps_set_arg_tensor(handle, 2, buf0);
            aoti_torch_mps_set_arg_tensor(handle, 3, arg2_1);
            aoti_torch_mps_set_arg_int(handle, 4, s77);
            aoti_torch_mps_dispatch_single(handle, static_cast<uint64_t>(48L));
        };

        std::function<void(AOTIMetalKernelFunctionHandle)> mps_lib_2_func_wrapper_2 = mps_lib_2_lambda_2;
        aoti_torch_mps_run_command_block(get_mps_lib_2_handle(), aoti_torch_mps_shared_callback, &mps_lib_2_func_wrapper_2);
        arg2_1.reset();
        arg4_1.reset();
        output_handles[0] = buf3.release();
        output_handles[1] = buf4.release();
        output_handles[2] = buf5.release();
} // AOTInductorModel::run_impl
} // namespace torch::aot_inductor
// (end cut)
