CACHE_TORCH_DTYPE(float32);
CACHE_TORCH_DEVICE(cpu);
CACHE_TORCH_DEVICE(cuda);
namespace torch::aot_inductor {

namespace {
class AOTInductorModelKernels : public AOTInductorModelKernelsBase {
  public:
    CUfunction triton_poi_fused_add_sum_0{nullptr};
    CUfunction triton_poi_fused_mul_2{nullptr};
};
}  // namespace

AOTInductorModel::AOTInductorModel(std::shared_ptr<ConstantMap> constants_map,
                                   std::shared_ptr<std::vector<ConstantHandle>> constants_array,
                                   const std::string& device_str,
                                   std::optional<std::string> cubin_dir,
                                   bool include_weights)
    : AOTInductorModelBase(2, 2, 0, device_str, cubin_dir, true) {
    inputs_info_[0].name = "arg0_1";
    inputs_info_[1].name = "arg1_1";
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
    auto arg0_1 = std::move(inputs[0]);
    auto arg1_1 = std::move(inputs[1]);

    if ((long(arg0_1.data_ptr()) & (16 -1)) != 0) {
        throw std::runtime_error("arg0_1 is not aligned to 16 bytes");
    }
    inputs.clear();
    auto& kernels = static_cast<AOTInductorModelKernels&>(*this->kernels_.get());

    AOTICudaStreamGuard stream_guard(stream, this->device_idx_);
    static constexpr int64_t int_array_0[] = {8L, };
    static constexpr int64_t int_array_1[] = {1L, };
    AtenTensorHandle buf1_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(1, int_array_0, int_array_1, cached_torch_dtype_float32, cached_torch_device_type_cuda, this->device_idx_, &buf1_handle));
    RAIIAtenTensorHandle buf1(buf1_handle);
    // Topologically Sorted Source Nodes: [sum_1, add], Original ATen: [aten.sum, aten.add]
    if (kernels.triton_poi_fused_add_sum_0 == nullptr) {
        kernels.triton_poi_fused_add_sum_0 = loadKernel("/srv/build/cv4nlff6lmvu6uicg4sss3frihatiddydhecy2ge6hnydwdduilf.cubin", "triton_poi_fused_add_sum_0", 0, this->cubin_dir_);
    }
    CUdeviceptr var_0 = reinterpret_cast<CUdeviceptr>(arg0_1.data_ptr());
    CUdeviceptr var_1 = reinterpret_cast<CUdeviceptr>(buf1.data_ptr());
    int var_2 = 8L;
    void* kernel_args_var_0[] = {&var_0, &var_1, &var_2};
    Grid triton_poi_fused_add_sum_0_grid_0 = Grid(1L, 1L, 1L);
    if (triton_poi_fused_add_sum_0_grid_0.is_non_zero()) {
        launchKernel(kernels.triton_poi_fused_add_sum_0, triton_poi_fused_add_sum_0_grid_0.grid_x, triton_poi_fused_add_sum_0_grid_0.grid_y, triton_poi_fused_add_sum_0_grid_0.grid_z, 1, 0, kernel_args_var_0, stream);
    }
    AtenTensorHandle buf2_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(1, int_array_0, int_array_1, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &buf2_handle));
    RAIIAtenTensorHandle buf2(buf2_handle);
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(expensive_copy_to_tensor_if_needed(buf2), buf1, 0));
    buf1.reset();
    auto buf3 = std::move(buf2);  // reuse
    cpp_fused_mul_1((float*)(buf3.data_ptr()));

    static constexpr int64_t int_array_2[] = {4L, 8L};
    static constexpr int64_t int_array_3[] = {8L, 1L};
    AtenTensorHandle buf0_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_2, int_array_3, cached_torch_dtype_float32, cached_torch_device_type_cuda, this->device_idx_, &buf0_handle));
    RAIIAtenTensorHandle buf0(buf0_handle);
    // Topologically Sorted Source Nodes: [mul], Original ATen: [aten.mul]
    if (kernels.triton_poi_fused_mul_2 == nullptr) {
        kernels.triton_poi_fused_mul_2 = loadKernel("/srv/build/c3fmou3t5vkmdz2cjgukc2c3ytcuoiyhouuvasdgut3j3xfa25tk.cubin", "triton_poi_fused_mul_2", 0, this->cubin_dir_);
    }
    CUdeviceptr var_3 = reinterpret_cast<CUdeviceptr>(arg0_1.data_ptr());
    float var_4;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_item_float32(arg1_1, &var_4));
    CUdeviceptr var_5 = reinterpret_cast<CUdeviceptr>(buf0.data_ptr());
    int var_6 = 32L;
    void* kernel_args_var_1[] = {&var_3, &var_4, &var_5, &var_6};
    Grid triton_poi_fused_mul_2_grid_1 = Grid(1L, 1L, 1L);
    if (triton_poi_fused_mul_2_grid_1.is_non_zero()) {
        launchKernel(kernels.triton_poi_fused_mul_2, triton_poi_fused_mul_2_grid_1.grid_x, triton_poi_fused_mul_2_grid_1.grid_y, triton_poi_fused_mul_2_grid_1.grid_z, 1, 0, kernel_args_var_1, stream);
    }
    arg0_1.reset();
    arg1_1.reset();
    output_handles[0] = buf0.release();
    output_handles[1] = buf3.release();
} // AOTInductorModel::run_impl
} // namespace torch::aot_inductor
