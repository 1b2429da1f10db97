// (beginning cut)
class AOTInductorModelKernels : public AOTInductorModelKernelsBase {
  public:
    void* cpp_fused__native_batch_norm_legit_no_training_0{nullptr};
    void* cpp_fused__native_batch_norm_legit_no_training_relu_2{nullptr};
    void* cpp_fused_convolution_1{nullptr};
};
}  // namespace



AOTInductorModel::AOTInductorModel(std::shared_ptr<ConstantMap> constants_map,
                                   std::shared_ptr<std::vector<ConstantHandle>> constants_array,
                                   const std::string& device_str,
                                   std::optional<std::string> cubin_dir)
    : AOTInductorModelBase(1,
                           1,
                           13,
                           device_str,
                           std::move(cubin_dir),
                           true) {
    inputs_info_[0].name = "arg9_1";
    constants_info_[0].name = "b_weight";
    constants_info_[0].dtype = cached_torch_dtype_float32;
    constants_info_[0].device_type = cached_torch_device_type_cpu;
    constants_info_[0].offset = 0;
    constants_info_[0].data_size = 64;
    constants_info_[0].from_folded = false;
    constants_info_[0].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Parameter);
    constants_info_[0].shape = {8};
    constants_info_[0].stride = {1};
    constants_info_[0].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[0].original_fqn = "b.weight";
    constants_info_[1].name = "b_bias";
    constants_info_[1].dtype = cached_torch_dtype_float32;
    constants_info_[1].device_type = cached_torch_device_type_cpu;
    constants_info_[1].offset = 0;
    constants_info_[1].data_size = 64;
    constants_info_[1].from_folded = false;
    constants_info_[1].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Parameter);
    constants_info_[1].shape = {8};
    constants_info_[1].stride = {1};
    constants_info_[1].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[1].original_fqn = "b.bias";
    constants_info_[2].name = "l_weight";
    constants_info_[2].dtype = cached_torch_dtype_float32;
    constants_info_[2].device_type = cached_torch_device_type_cpu;
    constants_info_[2].offset = 0;
    constants_info_[2].data_size = 73728;
    constants_info_[2].from_folded = false;
    constants_info_[2].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Parameter);
    constants_info_[2].shape = {64, 288};
    constants_info_[2].stride = {288, 1};
    constants_info_[2].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[2].original_fqn = "l.weight";
    constants_info_[3].name = "b_running_mean";
    constants_info_[3].dtype = cached_torch_dtype_float32;
    constants_info_[3].device_type = cached_torch_device_type_cpu;
    constants_info_[3].offset = 0;
    constants_info_[3].data_size = 64;
    constants_info_[3].from_folded = false;
    constants_info_[3].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Buffer);
    constants_info_[3].shape = {8};
    constants_info_[3].stride = {1};
    constants_info_[3].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[3].original_fqn = "b.running_mean";
    constants_info_[4].name = "b_running_var";
    constants_info_[4].dtype = cached_torch_dtype_float32;
    constants_info_[4].device_type = cached_torch_device_type_cpu;
    constants_info_[4].offset = 0;
    constants_info_[4].data_size = 64;
    constants_info_[4].from_folded = false;
    constants_info_[4].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Buffer);
    constants_info_[4].shape = {8};
    constants_info_[4].stride = {1};
    constants_info_[4].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[4].original_fqn = "b.running_var";
    constants_info_[5].name = "c_weight";
    constants_info_[5].dtype = cached_torch_dtype_float32;
    constants_info_[5].device_type = cached_torch_device_type_cpu;
    constants_info_[5].offset = 0;
    constants_info_[5].data_size = 896;
    constants_info_[5].from_folded = false;
    constants_info_[5].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Parameter);
    constants_info_[5].shape = {8, 3, 3, 3};
    constants_info_[5].stride = {27, 9, 3, 1};
    constants_info_[5].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[5].original_fqn = "c.weight";
    constants_info_[6].name = "c_bias";
    constants_info_[6].dtype = cached_torch_dtype_float32;
    constants_info_[6].device_type = cached_torch_device_type_cpu;
    constants_info_[6].offset = 0;
    constants_info_[6].data_size = 64;
    constants_info_[6].from_folded = false;
    constants_info_[6].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Parameter);
    constants_info_[6].shape = {8};
    constants_info_[6].stride = {1};
    constants_info_[6].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[6].original_fqn = "c.bias";
    constants_info_[7].name = "l_bias";
    constants_info_[7].dtype = cached_torch_dtype_float32;
    constants_info_[7].device_type = cached_torch_device_type_cpu;
    constants_info_[7].offset = 0;
    constants_info_[7].data_size = 256;
    constants_info_[7].from_folded = false;
    constants_info_[7].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Parameter);
    constants_info_[7].shape = {64};
    constants_info_[7].stride = {1};
    constants_info_[7].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[7].original_fqn = "l.bias";
    constants_info_[8].name = "_FOLDED_CONST_unsqueeze_1";
    constants_info_[8].dtype = cached_torch_dtype_float32;
    constants_info_[8].device_type = cached_torch_device_type_cpu;
    constants_info_[8].offset = 0;
    constants_info_[8].data_size = 64;
    constants_info_[8].from_folded = true;
    constants_info_[8].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::FoldedConstant);
    constants_info_[8].shape = {8, 1, 1};
    constants_info_[8].stride = {1, 1, 1};
    constants_info_[8].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[8].original_fqn = "_FOLDED_CONST_unsqueeze_1";
    constants_info_[9].name = "_FOLDED_CONST_unsqueeze_3";
    constants_info_[9].dtype = cached_torch_dtype_float32;
    constants_info_[9].device_type = cached_torch_device_type_cpu;
    constants_info_[9].offset = 0;
    constants_info_[9].data_size = 64;
    constants_info_[9].from_folded = true;
    constants_info_[9].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::FoldedConstant);
    constants_info_[9].shape = {8, 1, 1};
    constants_info_[9].stride = {1, 1, 1};
    constants_info_[9].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[9].original_fqn = "_FOLDED_CONST_unsqueeze_3";
    constants_info_[10].name = "_FOLDED_CONST_unsqueeze_5";
    constants_info_[10].dtype = cached_torch_dtype_float32;
    constants_info_[10].device_type = cached_torch_device_type_cpu;
    constants_info_[10].offset = 0;
    constants_info_[10].data_size = 64;
    constants_info_[10].from_folded = true;
    constants_info_[10].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::FoldedConstant);
    constants_info_[10].shape = {8, 1, 1};
    constants_info_[10].stride = {1, 1, 1};
    constants_info_[10].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[10].original_fqn = "_FOLDED_CONST_unsqueeze_5";
    constants_info_[11].name = "_FOLDED_CONST_unsqueeze_7";
    constants_info_[11].dtype = cached_torch_dtype_float32;
    constants_info_[11].device_type = cached_torch_device_type_cpu;
    constants_info_[11].offset = 0;
    constants_info_[11].data_size = 64;
    constants_info_[11].from_folded = true;
    constants_info_[11].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::FoldedConstant);
    constants_info_[11].shape = {8, 1, 1};
    constants_info_[11].stride = {1, 1, 1};
    constants_info_[11].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[11].original_fqn = "_FOLDED_CONST_unsqueeze_7";
    constants_info_[12].name = "_FOLDED_CONST_permute";
    constants_info_[12].dtype = cached_torch_dtype_float32;
    constants_info_[12].device_type = cached_torch_device_type_cpu;
    constants_info_[12].offset = 0;
    constants_info_[12].data_size = 73728;
    constants_info_[12].from_folded = true;
    constants_info_[12].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::FoldedConstant);
    constants_info_[12].shape = {288, 64};
    constants_info_[12].stride = {1, 288};
    constants_info_[12].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[12].original_fqn = "_FOLDED_CONST_permute";
    update_constants_map(std::move(constants_map));
    update_constants_array(std::move(constants_array));
    in_spec_ = R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": "builtins.tuple", "context": "null", "children_spec": [{"type": null, "context": null, "children_spec": []}]}, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}])";
    out_spec_ = R"([1, {"type": null, "context": null, "children_spec": []}])";
    outputs_info_[0].name = "output0";
    this->kernels_ = std::make_unique<AOTInductorModelKernels>();
}

std::unordered_map<std::string, AtenTensorHandle> AOTInductorModel::const_run_impl(
    DeviceStreamType stream,
    AOTIProxyExecutorHandle proxy_executor,
    bool initialization
) {
    
                std::unordered_map<std::string, AtenTensorHandle> folded_constants_map;
                folded_constants_map.reserve(5);
                std::vector<AtenTensorHandle> output_handles(5);
                

    // The below assignment of output_handles to constants is not used directly.
    // It's only used to memo the correspondence of handle and constants.
    output_handles[0] = constants_->at(8);
    output_handles[1] = constants_->at(9);
    output_handles[2] = constants_->at(10);
    output_handles[3] = constants_->at(11);
    output_handles[4] = constants_->at(12);
    _const_run_impl(output_handles, stream, proxy_executor);
    folded_constants_map["_FOLDED_CONST_unsqueeze_1"] = output_handles[0];
    folded_constants_map["_FOLDED_CONST_unsqueeze_3"] = output_handles[1];
    folded_constants_map["_FOLDED_CONST_unsqueeze_5"] = output_handles[2];
    folded_constants_map["_FOLDED_CONST_unsqueeze_7"] = output_handles[3];
    folded_constants_map["_FOLDED_CONST_permute"] = output_handles[4];
    return folded_constants_map;
}
} // namespace torch::aot_inductor
using namespace torch::aot_inductor;
namespace torch::aot_inductor {
CACHE_TORCH_DTYPE(float32);
CACHE_TORCH_DEVICE(cpu);

void AOTInductorModel::_const_run_impl(
    std::vector<AtenTensorHandle>& output_handles,
    DeviceStreamType stream,
    AOTIProxyExecutorHandle proxy_executor
) {
    [[maybe_unused]] auto& b_weight = constants_->at(0);
    [[maybe_unused]] auto& b_bias = constants_->at(1);
    [[maybe_unused]] auto& l_weight = constants_->at(2);
    [[maybe_unused]] auto& b_running_mean = constants_->at(3);
    [[maybe_unused]] auto& b_running_var = constants_->at(4);
    [[maybe_unused]] auto& kernels = static_cast<AOTInductorModelKernels&>(*this->kernels_.get());
    static constexpr int64_t int_array_0[] = {8L, };
    static constexpr int64_t int_array_1[] = {1L, };
    AtenTensorHandle buf0_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(1, int_array_0, int_array_1, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &buf0_handle));
    RAIIAtenTensorHandle buf0(buf0_handle);
    cpp_fused__native_batch_norm_legit_no_training_0((const float*)(b_running_var.data_ptr()), (float*)(buf0.data_ptr()));
    static constexpr int64_t int_array_2[] = {8L, 1L, 1L};
    static constexpr int64_t int_array_3[] = {1L, 1L, 1L};
    static constexpr int64_t int_array_4[] = {288L, 64L};
    static constexpr int64_t int_array_5[] = {1L, 288L};
    auto var_0 = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(b_running_mean, 3, int_array_2, int_array_3, 0L));
    auto var_1 = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(buf0, 3, int_array_2, int_array_3, 0L));
    auto var_2 = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(b_weight, 3, int_array_2, int_array_3, 0L));
    auto var_3 = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(b_bias, 3, int_array_2, int_array_3, 0L));
    auto var_4 = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(l_weight, 2, int_array_4, int_array_5, 0L));
    aoti_torch_clone(var_0, &output_handles[0]);
    output_handles[1] = var_1.release();
    aoti_torch_clone(var_2, &output_handles[2]);
    aoti_torch_clone(var_3, &output_handles[3]);
    aoti_torch_clone(var_4, &output_handles[4]);
} // AOTInductorModel::_const_run_impl

AOTI_NOINLINE static void check_input_0(
    AtenTensorHandle* input_handles
) {
    ConstantHandle arg9_1 = ConstantHandle(input_handles[0]);
    int32_t arg9_1_dtype;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(arg9_1, &arg9_1_dtype));

    int32_t arg9_1_expected_dtype = aoti_torch_dtype_float32();
    if (arg9_1_expected_dtype != arg9_1_dtype) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched dtype, "
           << "expected: " << arg9_1_expected_dtype << "(at::kFloat), "
           << "but got: " << arg9_1_dtype << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
    auto arg9_1_size = arg9_1.sizes();

    if (arg9_1_size[0] < 2) {
        std::stringstream ss;
        ss << "input_handles[0]: dim value is too small at 0, "
           << "expected it to be >= 2, " << "but got: "
           << arg9_1_size[0] << "\n";
        throw std::runtime_error(std::move(ss).str());
    }

    if (arg9_1_size[0] > 15) {
        std::stringstream ss;
        ss << "input_handles[0]: dim value is too large at 0, "
           << "expected to be <= 15, " << "but got: "
           << arg9_1_size[0] << "\n";
        throw std::runtime_error(std::move(ss).str());
    }

    if (3 != arg9_1_size[1]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched dim value at 1, "
           << "expected: 3, " << "but got: " << arg9_1_size[1]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }

    if (8 != arg9_1_size[2]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched dim value at 2, "
           << "expected: 8, " << "but got: " << arg9_1_size[2]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }

    if (8 != arg9_1_size[3]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched dim value at 3, "
           << "expected: 8, " << "but got: " << arg9_1_size[3]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
    auto arg9_1_stride = arg9_1.strides();

    if (192 != arg9_1_stride[0]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched stride value at 0, "
           << "expected: 192, " << "but got: " << arg9_1_stride[0]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }

    if (64 != arg9_1_stride[1]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched stride value at 1, "
           << "expected: 64, " << "but got: " << arg9_1_stride[1]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }

    if (8 != arg9_1_stride[2]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched stride value at 2, "
           << "expected: 8, " << "but got: " << arg9_1_stride[2]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }

    if (1 != arg9_1_stride[3]) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched stride value at 3, "
           << "expected: 1, " << "but got: " << arg9_1_stride[3]
           << "\n";
        throw std::runtime_error(std::move(ss).str());
    }
    int32_t arg9_1_device_type;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(arg9_1, &arg9_1_device_type));

    int32_t arg9_1_expected_device_type = 0;
    if (arg9_1_expected_device_type != arg9_1_device_type) {
        std::stringstream ss;
        ss << "input_handles[0]: unmatched device type, "
        << "expected: " << arg9_1_expected_device_type << "0(cpu), "
        << "but got: " << arg9_1_device_type << "\n";
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
    auto arg9_1 = std::move(inputs[0]);
    [[maybe_unused]] auto& b_weight = constants_->at(0);
    [[maybe_unused]] auto& b_bias = constants_->at(1);
    [[maybe_unused]] auto& l_weight = constants_->at(2);
    [[maybe_unused]] auto& b_running_mean = constants_->at(3);
    [[maybe_unused]] auto& b_running_var = constants_->at(4);
    [[maybe_unused]] auto& c_weight = constants_->at(5);
    [[maybe_unused]] auto& c_bias = constants_->at(6);
    [[maybe_unused]] auto& l_bias = constants_->at(7);
    [[maybe_unused]] auto& _FOLDED_CONST_unsqueeze_1 = constants_->at(8);
    [[maybe_unused]] auto& _FOLDED_CONST_unsqueeze_3 = constants_->at(9);
    [[maybe_unused]] auto& _FOLDED_CONST_unsqueeze_5 = constants_->at(10);
    [[maybe_unused]] auto& _FOLDED_CONST_unsqueeze_7 = constants_->at(11);
    [[maybe_unused]] auto& _FOLDED_CONST_permute = constants_->at(12);
    auto arg9_1_size = arg9_1.sizes();
    int64_t s77 = arg9_1_size[0];
    inputs.clear();
    [[maybe_unused]] auto& kernels = static_cast<AOTInductorModelKernels&>(*this->kernels_.get());
    if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(arg9_1, {s77, 3L, 8L, 8L}, {192L, 64L, 8L, 1L}, "input"); }
    const int64_t int_array_0[] = {s77, 3L, 8L, 8L};
    static constexpr int64_t int_array_1[] = {192L, 1L, 24L, 3L};
    AtenTensorHandle buf0_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(4, int_array_0, int_array_1, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &buf0_handle));
    RAIIAtenTensorHandle buf0(buf0_handle);
    static constexpr int64_t int_array_2[] = {8L, 3L, 3L, 3L};
    static constexpr int64_t int_array_3[] = {27L, 1L, 9L, 3L};
    AtenTensorHandle buf1_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(4, int_array_2, int_array_3, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &buf1_handle));
    RAIIAtenTensorHandle buf1(buf1_handle);
    cpp_fused_convolution_1((const float*)(arg9_1.data_ptr()), (const float*)(c_weight.data_ptr()), (float*)(buf0.data_ptr()), (float*)(buf1.data_ptr()), s77);
    arg9_1.reset();
    // Topologically Sorted Source Nodes: [conv2d], Original ATen: [aten.convolution]
    AtenTensorHandle buf2_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_convolution(buf0, buf1, &temporary_reference(c_bias.get()), std::array<int64_t, 2>{1L, 1L}.cbegin(), 2, std::array<int64_t, 2>{0L, 0L}.cbegin(), 2, std::array<int64_t, 2>{1L, 1L}.cbegin(), 2, 0, std::array<int64_t, 2>{0L, 0L}.cbegin(), 2, 1L, &buf2_handle));
    RAIIAtenTensorHandle buf2(buf2_handle);
    if (_check_aoti_runtime_check_inputs_env()) { assert_size_stride(buf2, {s77, 8L, 6L, 6L}, {288L, 1L, 48L, 8L}, "torch.ops.aten.convolution.default"); }
    buf0.reset();
    buf1.reset();
    const int64_t int_array_4[] = {s77, 8L, 6L, 6L};
    static constexpr int64_t int_array_5[] = {288L, 36L, 6L, 1L};
    AtenTensorHandle buf3_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(4, int_array_4, int_array_5, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &buf3_handle));
    RAIIAtenTensorHandle buf3(buf3_handle);
    cpp_fused__native_batch_norm_legit_no_training_relu_2((const float*)(buf2.data_ptr()), (const float*)(_FOLDED_CONST_unsqueeze_1.data_ptr()), (const float*)(_FOLDED_CONST_unsqueeze_3.data_ptr()), (const float*)(_FOLDED_CONST_unsqueeze_5.data_ptr()), (const float*)(_FOLDED_CONST_unsqueeze_7.data_ptr()), (float*)(buf3.data_ptr()), s77);
    buf2.reset();
    const int64_t int_array_6[] = {s77, 64L};
    static constexpr int64_t int_array_7[] = {64L, 1L};
    AtenTensorHandle buf4_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_6, int_array_7, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &buf4_handle));
    RAIIAtenTensorHandle buf4(buf4_handle);
    // Topologically Sorted Source Nodes: [batch_norm, relu, flatten, linear], Original ATen: [aten._native_batch_norm_legit_no_training, aten.relu, aten.view, aten.addmm]
    const int64_t int_array_8[] = {s77, 288L};
    static constexpr int64_t int_array_9[] = {288L, 1L};
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(buf4, l_bias, wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(buf3, 2, int_array_8, int_array_9, 0L)), _FOLDED_CONST_permute, 1L, 1L));
    output_handles[0] = buf4.release();
} // AOTInductorModel::run_impl
} // namespace torch::aot_inductor




// Compile cmd
// g++ /build/cache/ctygb3jegqh4wf4pu5tdwvk5cusuupazar6vabg3v3xfjpmujq74.wrapper.cpp -D TORCH_INDUCTOR_CPP_WRAPPER -D STANDALONE_TORCH_HEADER -D  C10_USING_CUSTOM_GENERATED_MACROS -D CPU_CAPABILITY_AVX512  -O1 -DNDEBUG -fno-omit-frame-pointer -g1 -fno-trapping-math -funsafe-math-optimizations -ffinite-math-only -fno-signed-zeros -fno-finite-math-only -fno-unsafe-math-optimizations -fmath-errno -ffp-contract=off -fexcess-precision=fast -fno-tree-loop-vectorize -march=native -fPIC -Wall -std=c++20 -Wno-unused-variable -Wno-unknown-pragmas -pedantic -fopenmp  -include /build/cache/precompiled_headers/cnlas5dzeooiziy7e6yrypexrckgs4qhhtcjknbyxc5ii5kar5ta.h -I/build/python/include/python3.11 -I/build/venv/lib/python3.11/site-packages/torch/include -I/build/venv/lib/python3.11/site-packages/torch/include/torch/csrc/api/include   -mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma -mavx512vnni -mavx512vl -mamx-tile -mamx-bf16 -mamx-int8 -mavx512bf16  -c -o /build/cache/ctygb3jegqh4wf4pu5tdwvk5cusuupazar6vabg3v3xfjpmujq74.wrapper.o
// Link cmd
// g++ /build/cache/ctygb3jegqh4wf4pu5tdwvk5cusuupazar6vabg3v3xfjpmujq74.wrapper.o /build/cache/cgpboyj4mkydqdb5zrrhbec4d336tl4i6hysp2lo56m6abuxnsvl.kernel.o /build/cache/ctygb3jegqh4wf4pu5tdwvk5cusuupazar6vabg3v3xfjpmujq74/cmjxzjrgb2rpjcisas7qsztgxjfcw3am3ylwe6fyaq44eikkrkb3.weights.o -D TORCH_INDUCTOR_CPP_WRAPPER -D STANDALONE_TORCH_HEADER -D  C10_USING_CUSTOM_GENERATED_MACROS -D CPU_CAPABILITY_AVX512  -O3 -DNDEBUG -fno-omit-frame-pointer -g1 -fno-trapping-math -funsafe-math-optimizations -ffinite-math-only -fno-signed-zeros -fno-finite-math-only -fno-unsafe-math-optimizations -fmath-errno -ffp-contract=off -fexcess-precision=fast -fno-tree-loop-vectorize -march=native -shared -fPIC -Wall -std=c++20 -Wno-unused-variable -Wno-unknown-pragmas -pedantic -fopenmp  -I/build/python/include/python3.11 -I/build/venv/lib/python3.11/site-packages/torch/include -I/build/venv/lib/python3.11/site-packages/torch/include/torch/csrc/api/include   -mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma -mavx512vnni -mavx512vl -mamx-tile -mamx-bf16 -mamx-int8 -mavx512bf16  -o /build/cache/ctygb3jegqh4wf4pu5tdwvk5cusuupazar6vabg3v3xfjpmujq74.wrapper.so  -ltorch -ltorch_cpu -lgomp  -L/build/python/lib -L/build/venv/lib/python3.11/site-packages/torch/lib 
