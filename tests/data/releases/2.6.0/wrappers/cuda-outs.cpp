CACHE_TORCH_DTYPE(float32);
CACHE_TORCH_DEVICE(cuda);
CACHE_TORCH_LAYOUT(strided);
namespace torch::aot_inductor {

namespace {
class AOTInductorModelKernels : public AOTInductorModelKernelsBase {
  public:
    CUfunction triton_poi_fused_add_mul_relu_0{nullptr};
};
}  // namespace

AOTInductorModel::AOTInductorModel(std::shared_ptr<ConstantMap> constants_map,
                                   std::shared_ptr<std::vector<ConstantHandle>> constants_array,
                                   const std::string& device_str,
                                   std::optional<std::string> cubin_dir,
                                   bool include_weights)
    : AOTInductorModelBase(2, 8, 1, device_str, cubin_dir, true) {
    inputs_info_[0].name = "arg1_1";
    inputs_info_[1].name = "arg2_1";
    constants_info_[0].name = "c";
    constants_info_[0].dtype = static_cast<int32_t>(cached_torch_dtype_float32);
    constants_info_[0].offset = 0;
    constants_info_[0].data_size = 120;
    constants_info_[0].from_folded = false;
    constants_info_[0].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Buffer);
    constants_info_[0].shape = {30};
    constants_info_[0].stride = {1};
    constants_info_[0].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[0].original_fqn = "c";
    update_constants_map(std::move(constants_map));
    update_constants_array(std::move(constants_array));
    in_spec_ = "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}]}, {\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []}]}]";
    out_spec_ = "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}]}]";
    outputs_info_[0].name = "output0";
    outputs_info_[1].name = "output1";
    outputs_info_[2].name = "output2";
    outputs_info_[3].name = "output3";
    outputs_info_[4].name = "output4";
    outputs_info_[5].name = "output5";
    outputs_info_[6].name = "output6";
    outputs_info_[7].name = "output7";
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

void AOTInductorModel::_const_run_impl(
    std::vector<AtenTensorHandle>& output_handles,
    DeviceStreamType stream,
    AOTIProxyExecutorHandle proxy_executor
) {}

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

    auto inputs = steal_from_raw_handles_to_raii_handles(input_handles, 2);
    auto arg1_1 = std::move(inputs[0]);
    auto arg2_1 = std::move(inputs[1]);
    [[maybe_unused]] auto c = constants_->at(0);

    if ((long(arg1_1.data_ptr()) & (16 -1)) != 0) {
        throw std::runtime_error("arg1_1 is not aligned to 16 bytes");
    }

    if ((long(arg2_1.data_ptr()) & (16 -1)) != 0) {
        throw std::runtime_error("arg2_1 is not aligned to 16 bytes");
    }
    auto arg1_1_size = arg1_1.sizes();
    int64_t s0 = arg1_1_size[0];
    inputs.clear();
    auto& kernels = static_cast<AOTInductorModelKernels&>(*this->kernels_.get());

    AOTICudaStreamGuard stream_guard(stream, this->device_idx_);
    const int64_t int_array_0[] = {s0, 8L};
    static constexpr int64_t int_array_1[] = {8L, 1L};
    AtenTensorHandle buf0_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_1, cached_torch_dtype_float32, cached_torch_device_type_cuda, this->device_idx_, &buf0_handle));
    RAIIAtenTensorHandle buf0(buf0_handle);
    AtenTensorHandle buf1_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_1, cached_torch_dtype_float32, cached_torch_device_type_cuda, this->device_idx_, &buf1_handle));
    RAIIAtenTensorHandle buf1(buf1_handle);
    // Topologically Sorted Source Nodes: [add, relu, mul], Original ATen: [aten.add, aten.relu, aten.mul]
    int64_t triton_poi_fused_add_mul_relu_0_xnumel = 8L*s0;
    if (kernels.triton_poi_fused_add_mul_relu_0 == nullptr) {
        kernels.triton_poi_fused_add_mul_relu_0 = loadKernel("/srv/build/cf2kx3uuhzuf2yz2ckbxmsj3w5ldxno2hv2itgxszq544zk4l574.cubin", "triton_poi_fused_add_mul_relu_0", 0, this->cubin_dir_);
    }
    CUdeviceptr var_0 = reinterpret_cast<CUdeviceptr>(arg1_1.data_ptr());
    CUdeviceptr var_1 = reinterpret_cast<CUdeviceptr>(arg2_1.data_ptr());
    CUdeviceptr var_2 = reinterpret_cast<CUdeviceptr>(buf0.data_ptr());
    CUdeviceptr var_3 = reinterpret_cast<CUdeviceptr>(buf1.data_ptr());
    int32_t var_4 = triton_poi_fused_add_mul_relu_0_xnumel;
    void* kernel_args_var_0[] = {&var_0, &var_1, &var_2, &var_3, &var_4};
    Grid triton_poi_fused_add_mul_relu_0_grid_0 = Grid((-1L)*static_cast<int64_t>(std::floor((-1.0/4.0)*s0)), 1L, 1L);
    if (triton_poi_fused_add_mul_relu_0_grid_0.is_non_zero()) {
        launchKernel(kernels.triton_poi_fused_add_mul_relu_0, triton_poi_fused_add_mul_relu_0_grid_0.grid_x, triton_poi_fused_add_mul_relu_0_grid_0.grid_y, triton_poi_fused_add_mul_relu_0_grid_0.grid_z, 1, 0, kernel_args_var_0, stream);
    }
    arg2_1.reset();
    const int64_t int_array_2[] = {8L, s0};
    static constexpr int64_t int_array_3[] = {1L, 8L};
    auto tmp_tensor_handle_0 = reinterpret_tensor_wrapper(buf0, 2, int_array_2, int_array_3, 0L);
    RAIIAtenTensorHandle tmp_tensor_handle_0_raii(tmp_tensor_handle_0);
    const int64_t int_array_4[] = {(-1L) + s0, 8L};
    auto tmp_tensor_handle_1 = reinterpret_tensor_wrapper(buf0, 2, int_array_4, int_array_1, 8L);
    RAIIAtenTensorHandle tmp_tensor_handle_1_raii(tmp_tensor_handle_1);
    output_handles[0] = buf0.release();
    output_handles[1] = buf1.release();
    output_handles[2] = output_handles[0];
    output_handles[3] = arg1_1.release();
    aoti_torch_clone(c, &output_handles[4]);
    output_handles[5] = tmp_tensor_handle_0_raii.release();
    output_handles[7] = tmp_tensor_handle_1_raii.release();
} // AOTInductorModel::run_impl
} // namespace torch::aot_inductor
