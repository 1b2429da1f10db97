CACHE_TORCH_DTYPE(bool);
CACHE_TORCH_DTYPE(float32);
CACHE_TORCH_DTYPE(int64);
CACHE_TORCH_DEVICE(cuda);
CACHE_TORCH_LAYOUT(strided);
namespace torch::aot_inductor {

namespace {
class AOTInductorModelKernels : public AOTInductorModelKernelsBase {
  public:
    CUfunction triton_poi_fused_add_2{nullptr};
    CUfunction triton_poi_fused_add_mul_1{nullptr};
    CUfunction triton_poi_fused_lt_0{nullptr};
};
}  // namespace

AOTInductorModel::AOTInductorModel(std::shared_ptr<ConstantMap> constants_map,
                                   std::shared_ptr<std::vector<ConstantHandle>> constants_array,
                                   const std::string& device_str,
                                   std::optional<std::string> cubin_dir,
                                   bool include_weights)
    : AOTInductorModelBase(2, 2, 1, device_str, cubin_dir, true) {
    inputs_info_[0].name = "arg1_1";
    inputs_info_[1].name = "arg2_1";
    constants_info_[0].name = "w";
    constants_info_[0].dtype = static_cast<int32_t>(cached_torch_dtype_float32);
    constants_info_[0].offset = 0;
    constants_info_[0].data_size = 64;
    constants_info_[0].from_folded = false;
    constants_info_[0].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Buffer);
    constants_info_[0].shape = {16};
    constants_info_[0].stride = {1};
    constants_info_[0].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[0].original_fqn = "w";
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
    auto arg1_1 = std::move(inputs[0]);
    auto arg2_1 = std::move(inputs[1]);
    [[maybe_unused]] auto w = constants_->at(0);

    if ((long(arg1_1.data_ptr()) & (16 -1)) != 0) {
        throw std::runtime_error("arg1_1 is not aligned to 16 bytes");
    }

    if ((long(arg2_1.data_ptr()) & (16 -1)) != 0) {
        throw std::runtime_error("arg2_1 is not aligned to 16 bytes");
    }
    inputs.clear();
    auto& kernels = static_cast<AOTInductorModelKernels&>(*this->kernels_.get());

    AOTICudaStreamGuard stream_guard(stream, this->device_idx_);
    RAIIAtenTensorHandle buf0_cond_result;
    AtenTensorHandle buf1_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(arg2_1, &buf1_handle));
    RAIIAtenTensorHandle buf1(buf1_handle);
    AtenTensorHandle buf2_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(arg1_1, &buf2_handle));
    RAIIAtenTensorHandle buf2(buf2_handle);
    while (1) {
        // subgraph: while_loop_cond_graph_0
        AtenTensorHandle while_loop_cond_graph_0_arg0_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(buf1, &while_loop_cond_graph_0_arg0_1_handle));
        RAIIAtenTensorHandle while_loop_cond_graph_0_arg0_1(while_loop_cond_graph_0_arg0_1_handle);
        AtenTensorHandle while_loop_cond_graph_0_arg1_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(buf2, &while_loop_cond_graph_0_arg1_1_handle));
        RAIIAtenTensorHandle while_loop_cond_graph_0_arg1_1(while_loop_cond_graph_0_arg1_1_handle);
        AtenTensorHandle while_loop_cond_graph_0_arg2_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(w, &while_loop_cond_graph_0_arg2_1_handle));
        RAIIAtenTensorHandle while_loop_cond_graph_0_arg2_1(while_loop_cond_graph_0_arg2_1_handle);

        static constexpr int64_t int_array_0[] = {};
        AtenTensorHandle while_loop_cond_graph_0_buf0_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(0, int_array_0, int_array_0, cached_torch_dtype_bool, cached_torch_device_type_cuda, this->device_idx_, &while_loop_cond_graph_0_buf0_handle));
        RAIIAtenTensorHandle while_loop_cond_graph_0_buf0(while_loop_cond_graph_0_buf0_handle);
        // Unsorted Source Nodes: [while_loop, lt], Original ATen: [aten.lt]
        if (kernels.triton_poi_fused_lt_0 == nullptr) {
            kernels.triton_poi_fused_lt_0 = loadKernel("/srv/build/cl3f7a4uj7afxv537x5cahujwqquyvw6dchlf7mfqaykzoafcwli.cubin", "triton_poi_fused_lt_0", 0, this->cubin_dir_);
        }
        CUdeviceptr var_0 = reinterpret_cast<CUdeviceptr>(while_loop_cond_graph_0_arg0_1.data_ptr());
        CUdeviceptr var_1 = reinterpret_cast<CUdeviceptr>(while_loop_cond_graph_0_buf0.data_ptr());
        void* kernel_args_var_0[] = {&var_0, &var_1};
    Grid triton_poi_fused_lt_0_grid_0 = Grid(1L, 1L, 1L);
        if (triton_poi_fused_lt_0_grid_0.is_non_zero()) {
            launchKernel(kernels.triton_poi_fused_lt_0, triton_poi_fused_lt_0_grid_0.grid_x, triton_poi_fused_lt_0_grid_0.grid_y, triton_poi_fused_lt_0_grid_0.grid_z, 1, 0, kernel_args_var_0, stream);
        }
        while_loop_cond_graph_0_arg0_1.reset();
        buf0_cond_result.reset();
        buf0_cond_result = std::move(while_loop_cond_graph_0_buf0);
        bool buf0_cond_result_scalar;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_item_bool(buf0_cond_result, &buf0_cond_result_scalar));
        if (!buf0_cond_result_scalar) break;
        // subgraph: while_loop_body_graph_0
        AtenTensorHandle while_loop_body_graph_0_arg0_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(buf1, &while_loop_body_graph_0_arg0_1_handle));
        RAIIAtenTensorHandle while_loop_body_graph_0_arg0_1(while_loop_body_graph_0_arg0_1_handle);
        AtenTensorHandle while_loop_body_graph_0_arg1_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(buf2, &while_loop_body_graph_0_arg1_1_handle));
        RAIIAtenTensorHandle while_loop_body_graph_0_arg1_1(while_loop_body_graph_0_arg1_1_handle);
        AtenTensorHandle while_loop_body_graph_0_arg2_1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_assign_tensors_out(w, &while_loop_body_graph_0_arg2_1_handle));
        RAIIAtenTensorHandle while_loop_body_graph_0_arg2_1(while_loop_body_graph_0_arg2_1_handle);

        static constexpr int64_t int_array_1[] = {4L, 16L};
        static constexpr int64_t int_array_2[] = {16L, 1L};
        AtenTensorHandle while_loop_body_graph_0_buf0_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_1, int_array_2, cached_torch_dtype_float32, cached_torch_device_type_cuda, this->device_idx_, &while_loop_body_graph_0_buf0_handle));
        RAIIAtenTensorHandle while_loop_body_graph_0_buf0(while_loop_body_graph_0_buf0_handle);
        // Unsorted Source Nodes: [while_loop, mul, add_1], Original ATen: [aten.mul, aten.add]
        if (kernels.triton_poi_fused_add_mul_1 == nullptr) {
            kernels.triton_poi_fused_add_mul_1 = loadKernel("/srv/build/c5cuhrrze4ymxqaih33n7gjnowg5cmptagbogab246zhysqjasrb.cubin", "triton_poi_fused_add_mul_1", 0, this->cubin_dir_);
        }
        CUdeviceptr var_2 = reinterpret_cast<CUdeviceptr>(while_loop_body_graph_0_arg1_1.data_ptr());
        CUdeviceptr var_3 = reinterpret_cast<CUdeviceptr>(while_loop_body_graph_0_arg2_1.data_ptr());
        CUdeviceptr var_4 = reinterpret_cast<CUdeviceptr>(while_loop_body_graph_0_buf0.data_ptr());
        int var_5 = 64L;
        void* kernel_args_var_1[] = {&var_2, &var_3, &var_4, &var_5};
    Grid triton_poi_fused_add_mul_1_grid_1 = Grid(1L, 1L, 1L);
        if (triton_poi_fused_add_mul_1_grid_1.is_non_zero()) {
            launchKernel(kernels.triton_poi_fused_add_mul_1, triton_poi_fused_add_mul_1_grid_1.grid_x, triton_poi_fused_add_mul_1_grid_1.grid_y, triton_poi_fused_add_mul_1_grid_1.grid_z, 1, 0, kernel_args_var_1, stream);
        }
        while_loop_body_graph_0_arg1_1.reset();
        while_loop_body_graph_0_arg2_1.reset();
        static constexpr int64_t int_array_3[] = {};
        AtenTensorHandle while_loop_body_graph_0_buf1_handle;
        AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(0, int_array_3, int_array_3, cached_torch_dtype_int64, cached_torch_device_type_cuda, this->device_idx_, &while_loop_body_graph_0_buf1_handle));
        RAIIAtenTensorHandle while_loop_body_graph_0_buf1(while_loop_body_graph_0_buf1_handle);
        // Unsorted Source Nodes: [while_loop, add], Original ATen: [aten.add]
        if (kernels.triton_poi_fused_add_2 == nullptr) {
            kernels.triton_poi_fused_add_2 = loadKernel("/srv/build/cs236wvlbp3jky3esygjppdboznnp5gmh7gzxnqewpgynt6naq4u.cubin", "triton_poi_fused_add_2", 0, this->cubin_dir_);
        }
        CUdeviceptr var_6 = reinterpret_cast<CUdeviceptr>(while_loop_body_graph_0_arg0_1.data_ptr());
        CUdeviceptr var_7 = reinterpret_cast<CUdeviceptr>(while_loop_body_graph_0_buf1.data_ptr());
        void* kernel_args_var_2[] = {&var_6, &var_7};
    Grid triton_poi_fused_add_2_grid_2 = Grid(1L, 1L, 1L);
        if (triton_poi_fused_add_2_grid_2.is_non_zero()) {
            launchKernel(kernels.triton_poi_fused_add_2, triton_poi_fused_add_2_grid_2.grid_x, triton_poi_fused_add_2_grid_2.grid_y, triton_poi_fused_add_2_grid_2.grid_z, 1, 0, kernel_args_var_2, stream);
        }
        while_loop_body_graph_0_arg0_1.reset();
        buf1.reset();
        buf1 = std::move(while_loop_body_graph_0_buf1);
        buf2.reset();
        buf2 = std::move(while_loop_body_graph_0_buf0);
    }
    arg1_1.reset();
    arg2_1.reset();

    output_handles[0] = buf1.release();
    output_handles[1] = buf2.release();
} // AOTInductorModel::run_impl
} // namespace torch::aot_inductor
