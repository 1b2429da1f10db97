CACHE_TORCH_DTYPE(float32);
CACHE_TORCH_DEVICE(cuda);
CACHE_TORCH_LAYOUT(strided);
namespace torch::aot_inductor {

namespace {
class AOTInductorModelKernels : public AOTInductorModelKernelsBase {
  public:
    CUfunction triton_poi_fused_add_2{nullptr};
    CUfunction triton_poi_fused_addmm_mul_1{nullptr};
    CUfunction triton_poi_fused_addmm_relu_0{nullptr};
};
}  // namespace

AOTInductorModel::AOTInductorModel(std::shared_ptr<ConstantMap> constants_map,
                                   std::shared_ptr<std::vector<ConstantHandle>> constants_array,
                                   const std::string& device_str,
                                   std::optional<std::string> cubin_dir,
                                   bool include_weights)
    : AOTInductorModelBase(2, 1, 2, device_str, cubin_dir, true) {
    inputs_info_[0].name = "arg2_1";
    inputs_info_[1].name = "arg3_1";
    constants_info_[0].name = "a_weight";
    constants_info_[0].dtype = static_cast<int32_t>(cached_torch_dtype_float32);
    constants_info_[0].offset = 0;
    constants_info_[0].data_size = 1024;
    constants_info_[0].from_folded = false;
    constants_info_[0].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Parameter);
    constants_info_[0].shape = {16, 16};
    constants_info_[0].stride = {16, 1};
    constants_info_[0].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[0].original_fqn = "a.weight";
    constants_info_[1].name = "a_bias";
    constants_info_[1].dtype = static_cast<int32_t>(cached_torch_dtype_float32);
    constants_info_[1].offset = 0;
    constants_info_[1].data_size = 64;
    constants_info_[1].from_folded = false;
    constants_info_[1].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Parameter);
    constants_info_[1].shape = {16};
    constants_info_[1].stride = {1};
    constants_info_[1].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[1].original_fqn = "a.bias";
    update_constants_map(std::move(constants_map));
    update_constants_array(std::move(constants_array));
    in_spec_ = "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}]}, {\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []}]}]";
    out_spec_ = "[1, {\"type\": null, \"context\": null, \"children_spec\": []}]";
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
    [[maybe_unused]] auto a_weight = constants_->at(0);
    [[maybe_unused]] auto a_bias = constants_->at(1);

    if ((long(arg2_1.data_ptr()) & (16 -1)) != 0) {
        throw std::runtime_error("arg2_1 is not aligned to 16 bytes");
    }

    if ((long(arg3_1.data_ptr()) & (16 -1)) != 0) {
        throw std::runtime_error("arg3_1 is not aligned to 16 bytes");
    }
    inputs.clear();
    auto& kernels = static_cast<AOTInductorModelKernels&>(*this->kernels_.get());

    AOTICudaStreamGuard stream_guard(stream, this->device_idx_);
    RAIIAtenTensorHandle buf1;
    bool arg3_1_scalar;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_item_bool(arg3_1, &arg3_1_scalar));
    if (arg3_1_scalar) {
        // subgraph: true_graph_0
        AtenTensorHandle true_graph_0_arg0_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(a_bias, &true_graph_0_arg0_1_handle));
        RAIIAtenTensorHandle true_graph_0_arg0_1(true_graph_0_arg0_1_handle);
        AtenTensorHandle true_graph_0_arg1_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(a_weight, &true_graph_0_arg1_1_handle));
        RAIIAtenTensorHandle true_graph_0_arg1_1(true_graph_0_arg1_1_handle);
        AtenTensorHandle true_graph_0_arg2_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(arg2_1, &true_graph_0_arg2_1_handle));
        RAIIAtenTensorHandle true_graph_0_arg2_1(true_graph_0_arg2_1_handle);

        static constexpr int64_t int_array_4[] = {4L, 16L};
        static constexpr int64_t int_array_5[] = {16L, 1L};
        AtenTensorHandle true_graph_0_buf0_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_4, int_array_5, cached_torch_dtype_float32, cached_torch_device_type_cuda, this->device_idx_, &true_graph_0_buf0_handle));
        RAIIAtenTensorHandle true_graph_0_buf0(true_graph_0_buf0_handle);
        // Unsorted Source Nodes: [cond, linear], Original ATen: [aten.addmm]
        static constexpr int64_t int_array_0[] = {16L, 16L};
        static constexpr int64_t int_array_1[] = {1L, 16L};
        auto tmp_tensor_handle_0 = reinterpret_tensor_wrapper(true_graph_0_arg1_1, 2, int_array_0, int_array_1, 0L);
        RAIIAtenTensorHandle tmp_tensor_handle_0_raii(tmp_tensor_handle_0);
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cuda_mm_out(true_graph_0_buf0, true_graph_0_arg2_1, tmp_tensor_handle_0_raii));
        true_graph_0_arg1_1.reset();
        true_graph_0_arg2_1.reset();
        auto true_graph_0_buf1 = std::move(true_graph_0_buf0);  // reuse
        // Unsorted Source Nodes: [cond, relu, linear], Original ATen: [aten.relu, aten.addmm]
        if (kernels.triton_poi_fused_addmm_relu_0 == nullptr) {
            kernels.triton_poi_fused_addmm_relu_0 = loadKernel("/srv/build/cle4qrmoek53yk2wz57gr6lwkiz2xbmplllrkipnh4sfwxgg2vyr.cubin", "triton_poi_fused_addmm_relu_0", 0, this->cubin_dir_);
        }
        CUdeviceptr var_0 = reinterpret_cast<CUdeviceptr>(true_graph_0_buf1.data_ptr());
        CUdeviceptr var_1 = reinterpret_cast<CUdeviceptr>(true_graph_0_arg0_1.data_ptr());
        int var_2 = 64L;
        void* kernel_args_var_0[] = {&var_0, &var_1, &var_2};
    Grid triton_poi_fused_addmm_relu_0_grid_0 = Grid(1L, 1L, 1L);
        if (triton_poi_fused_addmm_relu_0_grid_0.is_non_zero()) {
            launchKernel(kernels.triton_poi_fused_addmm_relu_0, triton_poi_fused_addmm_relu_0_grid_0.grid_x, triton_poi_fused_addmm_relu_0_grid_0.grid_y, triton_poi_fused_addmm_relu_0_grid_0.grid_z, 1, 0, kernel_args_var_0, stream);
        }
        true_graph_0_arg0_1.reset();
        buf1.reset();
        buf1 = std::move(true_graph_0_buf1);
    } else {
        // subgraph: false_graph_0
        AtenTensorHandle false_graph_0_arg0_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(a_bias, &false_graph_0_arg0_1_handle));
        RAIIAtenTensorHandle false_graph_0_arg0_1(false_graph_0_arg0_1_handle);
        AtenTensorHandle false_graph_0_arg1_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(a_weight, &false_graph_0_arg1_1_handle));
        RAIIAtenTensorHandle false_graph_0_arg1_1(false_graph_0_arg1_1_handle);
        AtenTensorHandle false_graph_0_arg2_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(arg2_1, &false_graph_0_arg2_1_handle));
        RAIIAtenTensorHandle false_graph_0_arg2_1(false_graph_0_arg2_1_handle);

        static constexpr int64_t int_array_6[] = {4L, 16L};
        static constexpr int64_t int_array_7[] = {16L, 1L};
        AtenTensorHandle false_graph_0_buf0_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_6, int_array_7, cached_torch_dtype_float32, cached_torch_device_type_cuda, this->device_idx_, &false_graph_0_buf0_handle));
        RAIIAtenTensorHandle false_graph_0_buf0(false_graph_0_buf0_handle);
        // Unsorted Source Nodes: [cond, linear], Original ATen: [aten.addmm]
        static constexpr int64_t int_array_2[] = {16L, 16L};
        static constexpr int64_t int_array_3[] = {1L, 16L};
        auto tmp_tensor_handle_1 = reinterpret_tensor_wrapper(false_graph_0_arg1_1, 2, int_array_2, int_array_3, 0L);
        RAIIAtenTensorHandle tmp_tensor_handle_1_raii(tmp_tensor_handle_1);
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cuda_mm_out(false_graph_0_buf0, false_graph_0_arg2_1, tmp_tensor_handle_1_raii));
        false_graph_0_arg1_1.reset();
        false_graph_0_arg2_1.reset();
        auto false_graph_0_buf1 = std::move(false_graph_0_buf0);  // reuse
        // Unsorted Source Nodes: [cond, linear, mul], Original ATen: [aten.addmm, aten.mul]
        if (kernels.triton_poi_fused_addmm_mul_1 == nullptr) {
            kernels.triton_poi_fused_addmm_mul_1 = loadKernel("/srv/build/cje2kxwmccuuirpejv2m3jbti67ash2svglualg4bo4vpoxhh3iu.cubin", "triton_poi_fused_addmm_mul_1", 0, this->cubin_dir_);
        }
        CUdeviceptr var_3 = reinterpret_cast<CUdeviceptr>(false_graph_0_buf1.data_ptr());
        CUdeviceptr var_4 = reinterpret_cast<CUdeviceptr>(false_graph_0_arg0_1.data_ptr());
        int var_5 = 64L;
        void* kernel_args_var_1[] = {&var_3, &var_4, &var_5};
    Grid triton_poi_fused_addmm_mul_1_grid_1 = Grid(1L, 1L, 1L);
        if (triton_poi_fused_addmm_mul_1_grid_1.is_non_zero()) {
            launchKernel(kernels.triton_poi_fused_addmm_mul_1, triton_poi_fused_addmm_mul_1_grid_1.grid_x, triton_poi_fused_addmm_mul_1_grid_1.grid_y, triton_poi_fused_addmm_mul_1_grid_1.grid_z, 1, 0, kernel_args_var_1, stream);
        }
        false_graph_0_arg0_1.reset();
        buf1.reset();
        buf1 = std::move(false_graph_0_buf1);
    }
    arg2_1.reset();
    arg3_1.reset();

    auto buf2 = std::move(buf1);  // reuse
    // Topologically Sorted Source Nodes: [add], Original ATen: [aten.add]
    if (kernels.triton_poi_fused_add_2 == nullptr) {
        kernels.triton_poi_fused_add_2 = loadKernel("/srv/build/cs236wvlbp3jky3esygjppdboznnp5gmh7gzxnqewpgynt6naq4u.cubin", "triton_poi_fused_add_2", 0, this->cubin_dir_);
    }
    CUdeviceptr var_6 = reinterpret_cast<CUdeviceptr>(buf2.data_ptr());
    int var_7 = 64L;
    void* kernel_args_var_2[] = {&var_6, &var_7};
    Grid triton_poi_fused_add_2_grid_2 = Grid(1L, 1L, 1L);
    if (triton_poi_fused_add_2_grid_2.is_non_zero()) {
        launchKernel(kernels.triton_poi_fused_add_2, triton_poi_fused_add_2_grid_2.grid_x, triton_poi_fused_add_2_grid_2.grid_y, triton_poi_fused_add_2_grid_2.grid_z, 1, 0, kernel_args_var_2, stream);
    }
    output_handles[0] = buf2.release();
} // AOTInductorModel::run_impl
} // namespace torch::aot_inductor
