CACHE_TORCH_DTYPE(float32);
CACHE_TORCH_DTYPE(int64);
CACHE_TORCH_DEVICE(cuda);
namespace torch::aot_inductor {

namespace {
class AOTInductorModelKernels : public AOTInductorModelKernelsBase {
  public:
    CUfunction triton_per_fused_cumsum_1{nullptr};
    CUfunction triton_per_fused_sort_0{nullptr};
};
}  // namespace

AOTInductorModel::AOTInductorModel(std::shared_ptr<ConstantMap> constants_map,
                                   std::shared_ptr<std::vector<ConstantHandle>> constants_array,
                                   const std::string& device_str,
                                   std::optional<std::string> cubin_dir,
                                   bool include_weights)
    : AOTInductorModelBase(1, 7, 0, device_str, cubin_dir, true) {
    inputs_info_[0].name = "arg0_1";
    update_constants_map(std::move(constants_map));
    update_constants_array(std::move(constants_array));
    in_spec_ = "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}]}, {\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []}]}]";
    out_spec_ = "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}]}]";
    outputs_info_[0].name = "output0";
    outputs_info_[1].name = "output1";
    outputs_info_[2].name = "output2";
    outputs_info_[3].name = "output3";
    outputs_info_[4].name = "output4";
    outputs_info_[5].name = "output5";
    outputs_info_[6].name = "output6";
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

    auto inputs = steal_from_raw_handles_to_raii_handles(input_handles, 1);
    auto arg0_1 = std::move(inputs[0]);

    if ((long(arg0_1.data_ptr()) & (16 -1)) != 0) {
        throw std::runtime_error("arg0_1 is not aligned to 16 bytes");
    }
    inputs.clear();
    auto& kernels = static_cast<AOTInductorModelKernels&>(*this->kernels_.get());

    AOTICudaStreamGuard stream_guard(stream, this->device_idx_);
    static constexpr int64_t int_array_0[] = {6L, 8L};
    static constexpr int64_t int_array_1[] = {8L, 1L};
    AtenTensorHandle buf0_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_1, cached_torch_dtype_float32, cached_torch_device_type_cuda, this->device_idx_, &buf0_handle));
    RAIIAtenTensorHandle buf0(buf0_handle);
    AtenTensorHandle buf2_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_1, cached_torch_dtype_int64, cached_torch_device_type_cuda, this->device_idx_, &buf2_handle));
    RAIIAtenTensorHandle buf2(buf2_handle);
    // Topologically Sorted Source Nodes: [sort], Original ATen: [aten.sort]
    if (kernels.triton_per_fused_sort_0 == nullptr) {
        kernels.triton_per_fused_sort_0 = loadKernel("/srv/build/cekeiryvmu55acoqzlyx5s6qbjvszd43fv7rnv7osl2jc4zb46eu.cubin", "triton_per_fused_sort_0", 0, this->cubin_dir_);
    }
    CUdeviceptr var_0 = reinterpret_cast<CUdeviceptr>(arg0_1.data_ptr());
    CUdeviceptr var_1 = reinterpret_cast<CUdeviceptr>(buf0.data_ptr());
    CUdeviceptr var_2 = reinterpret_cast<CUdeviceptr>(buf2.data_ptr());
    int var_3 = 6L;
    int var_4 = 8L;
    void* kernel_args_var_0[] = {&var_0, &var_1, &var_2, &var_3, &var_4};
    Grid triton_per_fused_sort_0_grid_0 = Grid(6L, 1L, 1L);
    if (triton_per_fused_sort_0_grid_0.is_non_zero()) {
        launchKernel(kernels.triton_per_fused_sort_0, triton_per_fused_sort_0_grid_0.grid_x, triton_per_fused_sort_0_grid_0.grid_y, triton_per_fused_sort_0_grid_0.grid_z, 2, 0, kernel_args_var_0, stream);
    }
    // Topologically Sorted Source Nodes: [topk], Original ATen: [aten.topk]
    AtenTensorHandle buf4_handle;
    AtenTensorHandle buf5_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cuda_topk(arg0_1, 3L, -1L, 1, 1, &buf4_handle, &buf5_handle));
    RAIIAtenTensorHandle buf4(buf4_handle);
    RAIIAtenTensorHandle buf5(buf5_handle);

    // Topologically Sorted Source Nodes: [kthvalue], Original ATen: [aten.kthvalue]
    AtenTensorHandle buf7_handle;
    AtenTensorHandle buf8_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cuda_kthvalue(arg0_1, 2L, -1L, 0, &buf7_handle, &buf8_handle));
    RAIIAtenTensorHandle buf7(buf7_handle);
    RAIIAtenTensorHandle buf8(buf8_handle);

    // Topologically Sorted Source Nodes: [_unique2], Original ATen: [aten._unique2]
    AtenTensorHandle buf10_handle;  // output buffer
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_new_uninitialized_tensor(&buf10_handle));
    RAIIAtenTensorHandle buf10(buf10_handle);
    AtenTensorHandle buf11_handle;  // output buffer
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_new_uninitialized_tensor(&buf11_handle));
    RAIIAtenTensorHandle buf11(buf11_handle);
    AtenTensorHandle buf12_handle;  // output buffer
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_new_uninitialized_tensor(&buf12_handle));
    RAIIAtenTensorHandle buf12(buf12_handle);
    aoti_torch_proxy_executor_call_function(proxy_executor, 0, 0, std::vector<int64_t>{}.data(), 4, std::vector<AtenTensorHandle>{arg0_1, buf10, buf11, buf12}.data());
    auto u0 = buf10.size(0);
    if (!(u0 >= 0L)) { throw std::runtime_error("u0 >= 0"); }
    if (!(u0 <= 48L)) { throw std::runtime_error("u0 <= 48"); }


    AtenTensorHandle buf15_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_1, cached_torch_dtype_float32, cached_torch_device_type_cuda, this->device_idx_, &buf15_handle));
    RAIIAtenTensorHandle buf15(buf15_handle);
    // Topologically Sorted Source Nodes: [cumsum], Original ATen: [aten.cumsum]
    if (kernels.triton_per_fused_cumsum_1 == nullptr) {
        kernels.triton_per_fused_cumsum_1 = loadKernel("/srv/build/coeaiuxoous5yunbpdivn5qq25i5m6jfumebw3gvndqr55447o42.cubin", "triton_per_fused_cumsum_1", 0, this->cubin_dir_);
    }
    CUdeviceptr var_5 = reinterpret_cast<CUdeviceptr>(arg0_1.data_ptr());
    CUdeviceptr var_6 = reinterpret_cast<CUdeviceptr>(buf15.data_ptr());
    int var_7 = 8L;
    int var_8 = 6L;
    void* kernel_args_var_1[] = {&var_5, &var_6, &var_7, &var_8};
    Grid triton_per_fused_cumsum_1_grid_1 = Grid(8L, 1L, 1L);
    if (triton_per_fused_cumsum_1_grid_1.is_non_zero()) {
        launchKernel(kernels.triton_per_fused_cumsum_1, triton_per_fused_cumsum_1_grid_1.grid_x, triton_per_fused_cumsum_1_grid_1.grid_y, triton_per_fused_cumsum_1_grid_1.grid_z, 2, 0, kernel_args_var_1, stream);
    }
    arg0_1.reset();
    output_handles[0] = buf0.release();
    output_handles[1] = buf2.release();
    output_handles[2] = buf4.release();
    output_handles[3] = buf5.release();
    output_handles[4] = buf7.release();
    output_handles[5] = buf15.release();
    output_handles[6] = buf10.release();
} // AOTInductorModel::run_impl
} // namespace torch::aot_inductor
