CACHE_TORCH_DTYPE(float32);
CACHE_TORCH_DTYPE(int64);
CACHE_TORCH_DEVICE(cuda);
namespace torch::aot_inductor {

namespace {
class AOTInductorModelKernels : public AOTInductorModelKernelsBase {
  public:
    CUfunction triton_per_fused_div_sum_0{nullptr};
    CUfunction triton_poi_fused_add_arange_1{nullptr};
    CUfunction triton_poi_fused_full_2{nullptr};
    CUfunction triton_poi_fused_repeat_3{nullptr};
};
}  // namespace

AOTInductorModel::AOTInductorModel(std::shared_ptr<ConstantMap> constants_map,
                                   std::shared_ptr<std::vector<ConstantHandle>> constants_array,
                                   const std::string& device_str,
                                   std::optional<std::string> cubin_dir,
                                   bool include_weights)
    : AOTInductorModelBase(2, 5, 0, device_str, cubin_dir, true) {
    inputs_info_[0].name = "arg0_1";
    inputs_info_[1].name = "arg1_1";
    update_constants_map(std::move(constants_map));
    update_constants_array(std::move(constants_array));
    in_spec_ = "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}]}, {\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []}]}]";
    out_spec_ = "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}]}]";
    outputs_info_[0].name = "output0";
    outputs_info_[1].name = "output1";
    outputs_info_[2].name = "output2";
    outputs_info_[3].name = "output3";
    outputs_info_[4].name = "output4";
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

    if ((long(arg1_1.data_ptr()) & (16 -1)) != 0) {
        throw std::runtime_error("arg1_1 is not aligned to 16 bytes");
    }
    auto arg0_1_size = arg0_1.sizes();
    int64_t s0 = arg0_1_size[0];
    inputs.clear();
    auto& kernels = static_cast<AOTInductorModelKernels&>(*this->kernels_.get());

    AOTICudaStreamGuard stream_guard(stream, this->device_idx_);
    static constexpr int64_t int_array_0[] = {};
    AtenTensorHandle buf3_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(0, int_array_0, int_array_0, cached_torch_dtype_float32, cached_torch_device_type_cuda, this->device_idx_, &buf3_handle));
    RAIIAtenTensorHandle buf3(buf3_handle);
    auto buf4 = std::move(buf3);  // reuse
    // Topologically Sorted Source Nodes: [sum_1, div], Original ATen: [aten.sum, aten.div]
    int64_t triton_per_fused_div_sum_0_rnumel = 8L*s0;
    if (kernels.triton_per_fused_div_sum_0 == nullptr) {
        kernels.triton_per_fused_div_sum_0 = loadKernel("/srv/build/crf5o7mu4bt2p3jzot3spd2ghttalywnrisn5g2dbr6sddzrlzul.cubin", "triton_per_fused_div_sum_0", 0, this->cubin_dir_);
    }
    CUdeviceptr var_0 = reinterpret_cast<CUdeviceptr>(buf4.data_ptr());
    CUdeviceptr var_1 = reinterpret_cast<CUdeviceptr>(arg0_1.data_ptr());
    int32_t var_2 = s0;
    int32_t var_3 = triton_per_fused_div_sum_0_rnumel;
    void* kernel_args_var_0[] = {&var_0, &var_1, &var_2, &var_3};
    Grid triton_per_fused_div_sum_0_grid_0 = Grid(1L, 1L, 1L);
    if (triton_per_fused_div_sum_0_grid_0.is_non_zero()) {
        launchKernel(kernels.triton_per_fused_div_sum_0, triton_per_fused_div_sum_0_grid_0.grid_x, triton_per_fused_div_sum_0_grid_0.grid_y, triton_per_fused_div_sum_0_grid_0.grid_z, 2, 0, kernel_args_var_0, stream);
    }
    const int64_t int_array_1[] = {s0, };
    static constexpr int64_t int_array_2[] = {1L, };
    AtenTensorHandle buf0_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(1, int_array_1, int_array_2, cached_torch_dtype_int64, cached_torch_device_type_cuda, this->device_idx_, &buf0_handle));
    RAIIAtenTensorHandle buf0(buf0_handle);
    // Topologically Sorted Source Nodes: [arange, add], Original ATen: [aten.arange, aten.add]
    if (kernels.triton_poi_fused_add_arange_1 == nullptr) {
        kernels.triton_poi_fused_add_arange_1 = loadKernel("/srv/build/c3b44nj7ndsrej37st5rvk4emhkrjsx7dqnarxg2vg53k6dd4lwc.cubin", "triton_poi_fused_add_arange_1", 0, this->cubin_dir_);
    }
    CUdeviceptr var_4 = reinterpret_cast<CUdeviceptr>(buf0.data_ptr());
    int32_t var_5 = s0;
    int32_t var_6 = s0;
    void* kernel_args_var_1[] = {&var_4, &var_5, &var_6};
    Grid triton_poi_fused_add_arange_1_grid_1 = Grid((-1L)*static_cast<int64_t>(std::floor((-1.0/4.0)*s0)), 1L, 1L);
    if (triton_poi_fused_add_arange_1_grid_1.is_non_zero()) {
        launchKernel(kernels.triton_poi_fused_add_arange_1, triton_poi_fused_add_arange_1_grid_1.grid_x, triton_poi_fused_add_arange_1_grid_1.grid_y, triton_poi_fused_add_arange_1_grid_1.grid_z, 1, 0, kernel_args_var_1, stream);
    }
    const int64_t int_array_3[] = {2L*s0, };
    AtenTensorHandle buf2_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(1, int_array_3, int_array_2, cached_torch_dtype_float32, cached_torch_device_type_cuda, this->device_idx_, &buf2_handle));
    RAIIAtenTensorHandle buf2(buf2_handle);
    // Topologically Sorted Source Nodes: [full], Original ATen: [aten.full]
    int64_t triton_poi_fused_full_2_xnumel = 2L*s0;
    if (kernels.triton_poi_fused_full_2 == nullptr) {
        kernels.triton_poi_fused_full_2 = loadKernel("/srv/build/cmhiarrnnyifblgybyg4jwqbbetcq4asxwevmbejnjcb5zvdqw25.cubin", "triton_poi_fused_full_2", 0, this->cubin_dir_);
    }
    CUdeviceptr var_7 = reinterpret_cast<CUdeviceptr>(buf2.data_ptr());
    int32_t var_8 = triton_poi_fused_full_2_xnumel;
    void* kernel_args_var_2[] = {&var_7, &var_8};
    Grid triton_poi_fused_full_2_grid_2 = Grid((-1L)*static_cast<int64_t>(std::floor((-1.0/4.0)*s0)), 1L, 1L);
    if (triton_poi_fused_full_2_grid_2.is_non_zero()) {
        launchKernel(kernels.triton_poi_fused_full_2, triton_poi_fused_full_2_grid_2.grid_x, triton_poi_fused_full_2_grid_2.grid_y, triton_poi_fused_full_2_grid_2.grid_z, 1, 0, kernel_args_var_2, stream);
    }
    const int64_t int_array_4[] = {s0, 8L};
    static constexpr int64_t int_array_5[] = {8L, 1L};
    AtenTensorHandle buf1_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_4, int_array_5, cached_torch_dtype_float32, cached_torch_device_type_cuda, this->device_idx_, &buf1_handle));
    RAIIAtenTensorHandle buf1(buf1_handle);
    // Topologically Sorted Source Nodes: [repeat], Original ATen: [aten.repeat]
    int64_t triton_poi_fused_repeat_3_xnumel = 8L*s0;
    if (kernels.triton_poi_fused_repeat_3 == nullptr) {
        kernels.triton_poi_fused_repeat_3 = loadKernel("/srv/build/ch4nekqnasr63tnhgg2gi5yopxo5o3ybuhdqxixudumr2dkl53cp.cubin", "triton_poi_fused_repeat_3", 0, this->cubin_dir_);
    }
    CUdeviceptr var_9 = reinterpret_cast<CUdeviceptr>(arg1_1.data_ptr());
    CUdeviceptr var_10 = reinterpret_cast<CUdeviceptr>(buf1.data_ptr());
    int32_t var_11 = triton_poi_fused_repeat_3_xnumel;
    void* kernel_args_var_3[] = {&var_9, &var_10, &var_11};
    Grid triton_poi_fused_repeat_3_grid_3 = Grid((-1L)*static_cast<int64_t>(std::floor((-1.0/4.0)*s0)), 1L, 1L);
    if (triton_poi_fused_repeat_3_grid_3.is_non_zero()) {
        launchKernel(kernels.triton_poi_fused_repeat_3, triton_poi_fused_repeat_3_grid_3.grid_x, triton_poi_fused_repeat_3_grid_3.grid_y, triton_poi_fused_repeat_3_grid_3.grid_z, 1, 0, kernel_args_var_3, stream);
    }
    arg1_1.reset();
    const int64_t int_array_6[] = {s0, 2L, 4L};
    static constexpr int64_t int_array_7[] = {8L, 4L, 1L};
    auto tmp_tensor_handle_0 = reinterpret_tensor_wrapper(arg0_1, 3, int_array_6, int_array_7, 0L);
    RAIIAtenTensorHandle tmp_tensor_handle_0_raii(tmp_tensor_handle_0);
    output_handles[0] = tmp_tensor_handle_0_raii.release();
    output_handles[1] = buf0.release();
    output_handles[2] = buf1.release();
    output_handles[3] = buf2.release();
    output_handles[4] = buf4.release();
} // AOTInductorModel::run_impl
} // namespace torch::aot_inductor
