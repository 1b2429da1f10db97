extern "C"  void  cpp_fused_0(float* out_ptr0);
extern "C"  void  cpp_fused_relu_1(float* in_out_ptr0);
extern "C"  void  cpp_fused_mul_2(float* in_out_ptr0);
extern "C"  void  cpp_fused_add_3(float* in_out_ptr0);
CACHE_TORCH_DTYPE(float32);
CACHE_TORCH_DEVICE(cpu);
CACHE_TORCH_LAYOUT(strided);
namespace torch::aot_inductor {
namespace {
class AOTInductorModelKernels : public AOTInductorModelKernelsBase {
  public:
    void* cpp_fused_0{nullptr};
    void* cpp_fused_add_3{nullptr};
    void* cpp_fused_mul_2{nullptr};
    void* cpp_fused_relu_1{nullptr};
};
}  // namespace



AOTInductorModel::AOTInductorModel(std::shared_ptr<ConstantMap> constants_map,
                                   std::shared_ptr<std::vector<ConstantHandle>> constants_array,
                                   const std::string& device_str,
                                   std::optional<std::string> cubin_dir)
    : AOTInductorModelBase(2,
                           1,
                           1,
                           device_str,
                           std::move(cubin_dir),
                           true) {
    inputs_info_[0].name = "arg2_1";
    inputs_info_[1].name = "arg3_1";
    constants_info_[0].name = "a_weight";
    constants_info_[0].dtype = static_cast<int32_t>(cached_torch_dtype_float32);
    constants_info_[0].offset = 0;
    constants_info_[0].data_size = 256;
    constants_info_[0].from_folded = false;
    constants_info_[0].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Parameter);
    constants_info_[0].shape = {8, 8};
    constants_info_[0].stride = {8, 1};
    constants_info_[0].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[0].original_fqn = "a.weight";
    update_constants_map(std::move(constants_map));
    update_constants_array(std::move(constants_array));
    in_spec_ = R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": "builtins.tuple", "context": "null", "children_spec": [{"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}]}, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}])";
    out_spec_ = R"([1, {"type": null, "context": null, "children_spec": []}])";
    outputs_info_[0].name = "output0";
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
    ConstantHandle arg2_1 = ConstantHandle(input_handles[0]);
    int32_t arg2_1_dtype;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(arg2_1, &arg2_1_dtype));

    int32_t arg2_1_expected_dtype = aoti_torch_dtype_float32();
    if (arg2_1_expected_dtype != arg2_1_dtype) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched dtype, "
           << "expected: " << arg2_1_expected_dtype << "(at::kFloat), "
           << "but got: " << arg2_1_dtype << "\n";
        throw std::runtime_error(ss.str());
    }
    auto arg2_1_size = arg2_1.sizes();

    if (4 != arg2_1_size[0]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched dim value at 0, "
           << "expected: 4, " << "but got: " << arg2_1_size[0]
           << "\n";
        throw std::runtime_error(ss.str());
    }

    if (8 != arg2_1_size[1]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched dim value at 1, "
           << "expected: 8, " << "but got: " << arg2_1_size[1]
           << "\n";
        throw std::runtime_error(ss.str());
    }
    auto arg2_1_stride = arg2_1.strides();

    if (8 != arg2_1_stride[0]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched stride value at 0, "
           << "expected: 8, " << "but got: " << arg2_1_stride[0]
           << "\n";
        throw std::runtime_error(ss.str());
    }

    if (1 != arg2_1_stride[1]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched stride value at 1, "
           << "expected: 1, " << "but got: " << arg2_1_stride[1]
           << "\n";
        throw std::runtime_error(ss.str());
    }
    int32_t arg2_1_device_type;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(arg2_1, &arg2_1_device_type));

    int32_t arg2_1_expected_device_type = 0;
    if (arg2_1_expected_device_type != arg2_1_device_type) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched device type, "
        << "expected: " << arg2_1_expected_device_type << "0(cpu), "
        << "but got: " << arg2_1_device_type << "\n";
        throw std::runtime_error(ss.str());
    }
}

AOTI_NOINLINE static void check_input_1(
    AtenTensorHandle* input_handles
) {
    ConstantHandle arg3_1 = ConstantHandle(input_handles[1]);
    int32_t arg3_1_dtype;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(arg3_1, &arg3_1_dtype));

    int32_t arg3_1_expected_dtype = aoti_torch_dtype_bool();
    if (arg3_1_expected_dtype != arg3_1_dtype) {
        std::stringstream ss;
        ss << "input_handles[1]: unmatched dtype, "
           << "expected: " << arg3_1_expected_dtype << "(at::kBool), "
           << "but got: " << arg3_1_dtype << "\n";
        throw std::runtime_error(ss.str());
    }
    auto arg3_1_size = arg3_1.sizes();
    auto arg3_1_stride = arg3_1.strides();
    int32_t arg3_1_device_type;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(arg3_1, &arg3_1_device_type));

    int32_t arg3_1_expected_device_type = 0;
    if (arg3_1_expected_device_type != arg3_1_device_type) {
        std::stringstream ss;
        ss << "input_handles[1]: unmatched device type, "
        << "expected: " << arg3_1_expected_device_type << "0(cpu), "
        << "but got: " << arg3_1_device_type << "\n";
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
    check_input_1(input_handles);
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

    auto inputs = steal_from_raw_handles_to_raii_handles(input_handles, 2);
    auto arg2_1 = std::move(inputs[0]);
    auto arg3_1 = std::move(inputs[1]);
    [[maybe_unused]] auto& a_weight = constants_->at(0);
    inputs.clear();
    [[maybe_unused]] auto& kernels = static_cast<AOTInductorModelKernels&>(*this->kernels_.get());
    static constexpr int64_t int_array_0[] = {8L, };
    static constexpr int64_t int_array_1[] = {1L, };
    AtenTensorHandle buf0_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(1, int_array_0, int_array_1, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &buf0_handle));
    RAIIAtenTensorHandle buf0(buf0_handle);
    cpp_fused_0((float*)(buf0.data_ptr()));
    RAIIAtenTensorHandle buf2;
    bool arg3_1_scalar;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_item_bool(arg3_1, &arg3_1_scalar));
    if (arg3_1_scalar) {
        // subgraph: true_graph_0
        AtenTensorHandle true_graph_0_arg0_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(buf0, &true_graph_0_arg0_1_handle));
        RAIIAtenTensorHandle true_graph_0_arg0_1(true_graph_0_arg0_1_handle);
        AtenTensorHandle true_graph_0_arg1_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(a_weight, &true_graph_0_arg1_1_handle));
        RAIIAtenTensorHandle true_graph_0_arg1_1(true_graph_0_arg1_1_handle);
        AtenTensorHandle true_graph_0_arg2_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(arg2_1, &true_graph_0_arg2_1_handle));
        RAIIAtenTensorHandle true_graph_0_arg2_1(true_graph_0_arg2_1_handle);
        static constexpr int64_t int_array_2[] = {4L, 8L};
        static constexpr int64_t int_array_3[] = {8L, 1L};
        AtenTensorHandle true_graph_0_buf0_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_2, int_array_3, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &true_graph_0_buf0_handle));
        RAIIAtenTensorHandle true_graph_0_buf0(true_graph_0_buf0_handle);
        // Unsorted Source Nodes: [cond, linear], Original ATen: [aten.addmm, aten.t]
        static constexpr int64_t int_array_4[] = {8L, 8L};
        static constexpr int64_t int_array_5[] = {1L, 8L};
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(true_graph_0_buf0, true_graph_0_arg0_1, true_graph_0_arg2_1, wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(true_graph_0_arg1_1, 2, int_array_4, int_array_5, 0L)), 1L, 1L));
        true_graph_0_arg0_1.reset();
        true_graph_0_arg1_1.reset();
        true_graph_0_arg2_1.reset();
        auto true_graph_0_buf1 = std::move(true_graph_0_buf0);  // reuse
        cpp_fused_relu_1((float*)(true_graph_0_buf1.data_ptr()));
        buf2.reset();
        buf2 = std::move(true_graph_0_buf1);
    } else {
        // subgraph: false_graph_0
        AtenTensorHandle false_graph_0_arg0_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(buf0, &false_graph_0_arg0_1_handle));
        RAIIAtenTensorHandle false_graph_0_arg0_1(false_graph_0_arg0_1_handle);
        AtenTensorHandle false_graph_0_arg1_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(a_weight, &false_graph_0_arg1_1_handle));
        RAIIAtenTensorHandle false_graph_0_arg1_1(false_graph_0_arg1_1_handle);
        AtenTensorHandle false_graph_0_arg2_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(arg2_1, &false_graph_0_arg2_1_handle));
        RAIIAtenTensorHandle false_graph_0_arg2_1(false_graph_0_arg2_1_handle);
        static constexpr int64_t int_array_6[] = {4L, 8L};
        static constexpr int64_t int_array_7[] = {8L, 1L};
        AtenTensorHandle false_graph_0_buf0_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_6, int_array_7, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &false_graph_0_buf0_handle));
        RAIIAtenTensorHandle false_graph_0_buf0(false_graph_0_buf0_handle);
        // Unsorted Source Nodes: [cond, linear], Original ATen: [aten.addmm, aten.t]
        static constexpr int64_t int_array_8[] = {8L, 8L};
        static constexpr int64_t int_array_9[] = {1L, 8L};
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(false_graph_0_buf0, false_graph_0_arg0_1, false_graph_0_arg2_1, wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(false_graph_0_arg1_1, 2, int_array_8, int_array_9, 0L)), 1L, 1L));
        false_graph_0_arg0_1.reset();
        false_graph_0_arg1_1.reset();
        false_graph_0_arg2_1.reset();
        auto false_graph_0_buf1 = std::move(false_graph_0_buf0);  // reuse
        cpp_fused_mul_2((float*)(false_graph_0_buf1.data_ptr()));
        buf2.reset();
        buf2 = std::move(false_graph_0_buf1);
    }
    arg2_1.reset();
    arg3_1.reset();
    buf0.reset();

    auto buf3 = std::move(buf2);  // reuse
    cpp_fused_add_3((float*)(buf3.data_ptr()));
    output_handles[0] = buf3.release();
} // AOTInductorModel::run_impl
} // namespace torch::aot_inductor
