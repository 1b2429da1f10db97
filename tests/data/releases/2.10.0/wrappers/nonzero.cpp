extern "C"  void  cpp_fused_gt_sum_0(const float* in_ptr0,
                       bool* out_ptr0,
                       bool* out_ptr1,
                       int64_t* out_ptr2);
extern "C"  void  cpp_fused_add_zeros_1(float* out_ptr0,
                       const int64_t ks0);
CACHE_TORCH_DTYPE(bool);
CACHE_TORCH_DTYPE(int64);
CACHE_TORCH_DTYPE(float32);
CACHE_TORCH_DEVICE(cpu);
namespace torch::aot_inductor {
namespace {
class AOTInductorModelKernels : public AOTInductorModelKernelsBase {
  public:
    void* cpp_fused_add_zeros_1{nullptr};
    void* cpp_fused_gt_sum_0{nullptr};
};
}  // namespace



AOTInductorModel::AOTInductorModel(std::shared_ptr<ConstantMap> constants_map,
                                   std::shared_ptr<std::vector<ConstantHandle>> constants_array,
                                   const std::string& device_str,
                                   std::optional<std::string> cubin_dir)
    : AOTInductorModelBase(1,
                           3,
                           0,
                           device_str,
                           std::move(cubin_dir),
                           true) {
    inputs_info_[0].name = "arg0_1";
    update_constants_map(std::move(constants_map));
    update_constants_array(std::move(constants_array));
    in_spec_ = R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": "builtins.tuple", "context": "null", "children_spec": [{"type": null, "context": null, "children_spec": []}]}, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}])";
    out_spec_ = R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}]}])";
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
        throw std::runtime_error(ss.str());
    }
    auto arg0_1_size = arg0_1.sizes();

    if (8 != arg0_1_size[0]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched dim value at 0, "
           << "expected: 8, " << "but got: " << arg0_1_size[0]
           << "\n";
        throw std::runtime_error(ss.str());
    }

    if (8 != arg0_1_size[1]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched dim value at 1, "
           << "expected: 8, " << "but got: " << arg0_1_size[1]
           << "\n";
        throw std::runtime_error(ss.str());
    }
    auto arg0_1_stride = arg0_1.strides();

    if (8 != arg0_1_stride[0]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched stride value at 0, "
           << "expected: 8, " << "but got: " << arg0_1_stride[0]
           << "\n";
        throw std::runtime_error(ss.str());
    }

    if (1 != arg0_1_stride[1]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched stride value at 1, "
           << "expected: 1, " << "but got: " << arg0_1_stride[1]
           << "\n";
        throw std::runtime_error(ss.str());
    }
    int32_t arg0_1_device_type;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(arg0_1, &arg0_1_device_type));

    int32_t arg0_1_expected_device_type = 0;
    if (arg0_1_expected_device_type != arg0_1_device_type) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched device type, "
        << "expected: " << arg0_1_expected_device_type << "0(cpu), "
        << "but got: " << arg0_1_device_type << "\n";
        throw std::runtime_error(ss.str());
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

    auto inputs = steal_from_raw_handles_to_raii_handles(input_handles, 1);
    auto arg0_1 = std::move(inputs[0]);
    inputs.clear();
    [[maybe_unused]] auto& kernels = static_cast<AOTInductorModelKernels&>(*this->kernels_.get());
    static constexpr int64_t int_array_0[] = {8L, 8L};
    static constexpr int64_t int_array_1[] = {8L, 1L};
    AtenTensorHandle buf0_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_1, cached_torch_dtype_bool, cached_torch_device_type_cpu, this->device_idx_, &buf0_handle));
    RAIIAtenTensorHandle buf0(buf0_handle);
    static constexpr int64_t int_array_2[] = {8L, 8L};
    static constexpr int64_t int_array_3[] = {8L, 1L};
    AtenTensorHandle buf15_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_2, int_array_3, cached_torch_dtype_bool, cached_torch_device_type_cpu, this->device_idx_, &buf15_handle));
    RAIIAtenTensorHandle buf15(buf15_handle);
    static constexpr int64_t *int_array_4=nullptr;
    AtenTensorHandle buf7_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(0, int_array_4, int_array_4, cached_torch_dtype_int64, cached_torch_device_type_cpu, this->device_idx_, &buf7_handle));
    RAIIAtenTensorHandle buf7(buf7_handle);
    cpp_fused_gt_sum_0((const float*)(arg0_1.data_ptr()), (bool*)(buf0.data_ptr()), (bool*)(buf15.data_ptr()), (int64_t*)(buf7.data_ptr()));
    // Topologically Sorted Source Nodes: [gt, nonzero], Original ATen: [aten.gt, aten.nonzero]
    AtenTensorHandle buf2_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_nonzero(buf0, &buf2_handle));
    RAIIAtenTensorHandle buf2(buf2_handle);
    auto u0 = buf2.size(0);
    buf0.reset();
    if (!(u0 >= 0L)) { throw std::runtime_error("Expected u0 >= 0 but received " + std::to_string(u0)); }
    if (!(u0 <= 64L)) { throw std::runtime_error("Expected u0 <= 64 but received " + std::to_string(u0)); }
    if (!(u0 >= 0L)) { throw std::runtime_error("Expected u0 >= 0 to be True but received " + std::to_string(u0)); }
    if (!(u0 <= 64L)) { throw std::runtime_error("Expected u0 <= 64 to be True but received " + std::to_string(u0)); }

    int64_t u1_raw;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_item_int64(buf7, &u1_raw));
    auto u1 = u1_raw;
    buf7.reset();
    if (!(u1 >= 0L)) { throw std::runtime_error("Expected u1 >= 0 but received " + std::to_string(u1)); }
    if (!(u1 <= 1000L)) { throw std::runtime_error("Expected u1 <= 1000 but received " + std::to_string(u1)); }
    if (!(0L <= u1)) { throw std::runtime_error("Expected 0 <= u1 but received " + std::to_string(u1)); }
    if (!(u1 <= 1000L)) { throw std::runtime_error("Expected u1 <= 1000 but received " + std::to_string(u1)); }
    if (!(u1 >= 0L)) { throw std::runtime_error("Expected u1 >= 0 to be True but received " + std::to_string(u1)); }
    if (!(u1 <= 1000L)) { throw std::runtime_error("Expected u1 <= 1000 to be True but received " + std::to_string(u1)); }
    // Topologically Sorted Source Nodes: [gt_2, index], Original ATen: [aten.gt, aten.index]
    AtenTensorHandle buf17_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_index_Tensor(arg0_1, std::array<const AtenTensorHandle*, 1>{&temporary_reference(buf15.get())}.data(), 1, &buf17_handle));
    RAIIAtenTensorHandle buf17(buf17_handle);
    auto u2 = buf17.size(0);
    arg0_1.reset();
    buf15.reset();
    if (!(u2 >= 0L)) { throw std::runtime_error("Expected u2 >= 0 but received " + std::to_string(u2)); }
    if (!(u2 <= 64L)) { throw std::runtime_error("Expected u2 <= 64 but received " + std::to_string(u2)); }
    if (!(u2 >= 0L)) { throw std::runtime_error("Expected u2 >= 0 to be True but received " + std::to_string(u2)); }
    if (!(u2 <= 64L)) { throw std::runtime_error("Expected u2 <= 64 to be True but received " + std::to_string(u2)); }

    const int64_t int_array_5[] = {u1, };
    static constexpr int64_t int_array_6[] = {1L, };
    AtenTensorHandle buf22_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(1, int_array_5, int_array_6, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &buf22_handle));
    RAIIAtenTensorHandle buf22(buf22_handle);
    cpp_fused_add_zeros_1((float*)(buf22.data_ptr()), u1);
    output_handles[0] = buf2.release();
    output_handles[1] = buf22.release();
    output_handles[2] = buf17.release();
} // AOTInductorModel::run_impl
} // namespace torch::aot_inductor
