CACHE_TORCH_DTYPE(float32);
CACHE_TORCH_DEVICE(cuda);
CACHE_TORCH_LAYOUT(strided);
namespace torch::aot_inductor {

namespace {
class AOTInductorModelKernels : public AOTInductorModelKernelsBase {
  public:
    CUfunction triton_poi_fused_add_1{nullptr};
    CUfunction triton_poi_fused_add_mul_0{nullptr};
    CUfunction triton_poi_fused_mul_2{nullptr};
};
}  // namespace

AOTInductorModel::AOTInductorModel(std::shared_ptr<ConstantMap> constants_map,
                                   std::shared_ptr<std::vector<ConstantHandle>> constants_array,
                                   const std::string& device_str,
                                   std::optional<std::string> cubin_dir,
                                   bool include_weights)
    : AOTInductorModelBase(2, 2, 2, device_str, cubin_dir, true) {
    inputs_info_[0].name = "arg2_1";
    inputs_info_[1].name = "arg3_1";
    constants_info_[0].name = "count";
    constants_info_[0].dtype = static_cast<int32_t>(cached_torch_dtype_float32);
    constants_info_[0].offset = 0;
    constants_info_[0].data_size = 32;
    constants_info_[0].from_folded = false;
    constants_info_[0].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Buffer);
    constants_info_[0].shape = {1, 8};
    constants_info_[0].stride = {8, 1};
    constants_info_[0].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[0].original_fqn = "count";
    constants_info_[1].name = "total";
    constants_info_[1].dtype = static_cast<int32_t>(cached_torch_dtype_float32);
    constants_info_[1].offset = 0;
    constants_info_[1].data_size = 128;
    constants_info_[1].from_folded = false;
    constants_info_[1].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Buffer);
    constants_info_[1].shape = {4, 8};
    constants_info_[1].stride = {8, 1};
    constants_info_[1].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[1].original_fqn = "total";
    update_constants_map(std::move(constants_map));
    update_constants_array(std::move(constants_array));
    in_spec_ = "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}]}, {\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []}]}]";
    out_spec_ = "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}]}]";
    outputs_info_[0].name = "output0";
    outputs_info_[1].name = "output1";
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
    auto arg2_1 = std::move(inputs[0]);
    auto arg3_1 = std::move(inputs[1]);
    [[maybe_unused]] auto count = constants_->at(0);
    [[maybe_unused]] auto total = constants_->at(1);

    if ((long(arg2_1.data_ptr()) & (16 -1)) != 0) {
        throw std::runtime_error("arg2_1 is not aligned to 16 bytes");
    }

    if ((long(arg3_1.data_ptr()) & (16 -1)) != 0) {
        throw std::runtime_error("arg3_1 is not aligned to 16 bytes");
    }
    inputs.clear();
    auto& kernels = static_cast<AOTInductorModelKernels&>(*this->kernels_.get());

    AOTICudaStreamGuard stream_guard(stream, this->device_idx_);
    static constexpr int64_t int_array_0[] = {4L, 8L};
    static constexpr int64_t int_array_1[] = {8L, 1L};
    AtenTensorHandle buf0_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_1, cached_torch_dtype_float32, cached_torch_device_type_cuda, this->device_idx_, &buf0_handle));
    RAIIAtenTensorHandle buf0(buf0_handle);
    AtenTensorHandle buf1_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_1, cached_torch_dtype_float32, cached_torch_device_type_cuda, this->device_idx_, &buf1_handle));
    RAIIAtenTensorHandle buf1(buf1_handle);
    // Topologically Sorted Source Nodes: [add_, add, add__1, mul], Original ATen: [aten.add, aten.mul]
    if (kernels.triton_poi_fused_add_mul_0 == nullptr) {
        kernels.triton_poi_fused_add_mul_0 = loadKernel("/srv/build/ctzl7jbs7q3ofufkd6ubj5bwcz2un5snkvjbikvkviagetzyap2x.cubin", "triton_poi_fused_add_mul_0", 0, this->cubin_dir_);
    }
    CUdeviceptr var_0 = reinterpret_cast<CUdeviceptr>(arg2_1.data_ptr());
    CUdeviceptr var_1 = reinterpret_cast<CUdeviceptr>(count.data_ptr());
    CUdeviceptr var_2 = reinterpret_cast<CUdeviceptr>(total.data_ptr());
    CUdeviceptr var_3 = reinterpret_cast<CUdeviceptr>(buf0.data_ptr());
    CUdeviceptr var_4 = reinterpret_cast<CUdeviceptr>(buf1.data_ptr());
    CUdeviceptr var_5 = reinterpret_cast<CUdeviceptr>(total.data_ptr());
    int var_6 = 32L;
    void* kernel_args_var_0[] = {&var_0, &var_1, &var_2, &var_3, &var_4, &var_5, &var_6};
    Grid triton_poi_fused_add_mul_0_grid_0 = Grid(1L, 1L, 1L);
    if (triton_poi_fused_add_mul_0_grid_0.is_non_zero()) {
        launchKernel(kernels.triton_poi_fused_add_mul_0, triton_poi_fused_add_mul_0_grid_0.grid_x, triton_poi_fused_add_mul_0_grid_0.grid_y, triton_poi_fused_add_mul_0_grid_0.grid_z, 1, 0, kernel_args_var_0, stream);
    }
    arg2_1.reset();
    // Topologically Sorted Source Nodes: [add_], Original ATen: [aten.add]
    if (kernels.triton_poi_fused_add_1 == nullptr) {
        kernels.triton_poi_fused_add_1 = loadKernel("/srv/build/c7qih7wot2qickt3pggmnweseegclr67kqedllrdxwyhc7s5q7yr.cubin", "triton_poi_fused_add_1", 0, this->cubin_dir_);
    }
    CUdeviceptr var_7 = reinterpret_cast<CUdeviceptr>(count.data_ptr());
    CUdeviceptr var_8 = reinterpret_cast<CUdeviceptr>(count.data_ptr());
    int var_9 = 8L;
    void* kernel_args_var_1[] = {&var_7, &var_8, &var_9};
    Grid triton_poi_fused_add_1_grid_1 = Grid(1L, 1L, 1L);
    if (triton_poi_fused_add_1_grid_1.is_non_zero()) {
        launchKernel(kernels.triton_poi_fused_add_1, triton_poi_fused_add_1_grid_1.grid_x, triton_poi_fused_add_1_grid_1.grid_y, triton_poi_fused_add_1_grid_1.grid_z, 1, 0, kernel_args_var_1, stream);
    }
    // Topologically Sorted Source Nodes: [mul_], Original ATen: [aten.mul]
    if (kernels.triton_poi_fused_mul_2 == nullptr) {
        kernels.triton_poi_fused_mul_2 = loadKernel("/srv/build/c3fmou3t5vkmdz2cjgukc2c3ytcuoiyhouuvasdgut3j3xfa25tk.cubin", "triton_poi_fused_mul_2", 0, this->cubin_dir_);
    }
    CUdeviceptr var_10 = reinterpret_cast<CUdeviceptr>(arg3_1.data_ptr());
    CUdeviceptr var_11 = reinterpret_cast<CUdeviceptr>(arg3_1.data_ptr());
    int var_12 = 32L;
    void* kernel_args_var_2[] = {&var_10, &var_11, &var_12};
    Grid triton_poi_fused_mul_2_grid_2 = Grid(1L, 1L, 1L);
    if (triton_poi_fused_mul_2_grid_2.is_non_zero()) {
        launchKernel(kernels.triton_poi_fused_mul_2, triton_poi_fused_mul_2_grid_2.grid_x, triton_poi_fused_mul_2_grid_2.grid_y, triton_poi_fused_mul_2_grid_2.grid_z, 1, 0, kernel_args_var_2, stream);
    }
    arg3_1.reset();
    output_handles[0] = buf0.release();
    output_handles[1] = buf1.release();
} // AOTInductorModel::run_impl
} // namespace torch::aot_inductor
