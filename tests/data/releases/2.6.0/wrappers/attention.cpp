typedef at::Half half;
typedef at::BFloat16 bfloat16;

// Round up to the nearest multiple of 64
[[maybe_unused]] static int64_t align(int64_t nbytes) {
  return (nbytes + 64 - 1) & -64;
}

extern "C"  void cpp_fused__scaled_dot_product_flash_attention_for_cpu_scalar_tensor_where_0(const bool* in_ptr0,
                       float* out_ptr0)
{
    {
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(25L); x0+=static_cast<int64_t>(16L))
        {
            {
                if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(16L)))
                {
                    auto tmp0 = at::vec::VecMask<float,1>::from(in_ptr0 + static_cast<int64_t>(x0));
                    auto tmp1 = static_cast<float>(0.0);
                    auto tmp2 = -std::numeric_limits<float>::infinity();
                    auto tmp3 = at::vec::Vectorized<float>(tmp1);
                    auto tmp4 = at::vec::Vectorized<float>(tmp2);
                    auto tmp5 = decltype(tmp3)::blendv(tmp4, tmp3, tmp0.template cast<float,1>());
                    tmp5.store(out_ptr0 + static_cast<int64_t>(x0));
                }
                if(C10_UNLIKELY(x0 >= static_cast<int64_t>(16L) && x0 < static_cast<int64_t>(25L)))
                {
                    for (int64_t x0_tail = static_cast<int64_t>(16L);x0_tail < static_cast<int64_t>(25L); x0_tail++)
                    {
                        auto tmp0 = in_ptr0[static_cast<int64_t>(x0_tail)];
                        auto tmp1 = static_cast<float>(0.0);
                        auto tmp2 = -std::numeric_limits<float>::infinity();
                        auto tmp3 = tmp0 ? tmp1 : tmp2;
                        out_ptr0[static_cast<int64_t>(x0_tail)] = tmp3;
                    }
                }
            }
        }
    }
}
CACHE_TORCH_DTYPE(float32);
CACHE_TORCH_DEVICE(cpu);
CACHE_TORCH_LAYOUT(strided);
namespace torch::aot_inductor {
namespace {
class AOTInductorModelKernels : public AOTInductorModelKernelsBase {
  public:
};
}  // namespace

AOTInductorModel::AOTInductorModel(std::shared_ptr<ConstantMap> constants_map,
                                   std::shared_ptr<std::vector<ConstantHandle>> constants_array,
                                   const std::string& device_str,
                                   std::optional<std::string> cubin_dir,
                                   bool include_weights)
    : AOTInductorModelBase(2, 1, 4, device_str, cubin_dir, true) {
    inputs_info_[0].name = "arg4_1";
    inputs_info_[1].name = "arg5_1";
    constants_info_[0].name = "qkv_weight";
    constants_info_[0].dtype = static_cast<int32_t>(cached_torch_dtype_float32);
    constants_info_[0].offset = 0;
    constants_info_[0].data_size = 12288;
    constants_info_[0].from_folded = false;
    constants_info_[0].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Parameter);
    constants_info_[0].shape = {96, 32};
    constants_info_[0].stride = {32, 1};
    constants_info_[0].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[0].original_fqn = "qkv.weight";
    constants_info_[1].name = "qkv_bias";
    constants_info_[1].dtype = static_cast<int32_t>(cached_torch_dtype_float32);
    constants_info_[1].offset = 0;
    constants_info_[1].data_size = 384;
    constants_info_[1].from_folded = false;
    constants_info_[1].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Parameter);
    constants_info_[1].shape = {96};
    constants_info_[1].stride = {1};
    constants_info_[1].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[1].original_fqn = "qkv.bias";
    constants_info_[2].name = "o_weight";
    constants_info_[2].dtype = static_cast<int32_t>(cached_torch_dtype_float32);
    constants_info_[2].offset = 0;
    constants_info_[2].data_size = 4096;
    constants_info_[2].from_folded = false;
    constants_info_[2].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Parameter);
    constants_info_[2].shape = {32, 32};
    constants_info_[2].stride = {32, 1};
    constants_info_[2].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[2].original_fqn = "o.weight";
    constants_info_[3].name = "o_bias";
    constants_info_[3].dtype = static_cast<int32_t>(cached_torch_dtype_float32);
    constants_info_[3].offset = 0;
    constants_info_[3].data_size = 128;
    constants_info_[3].from_folded = false;
    constants_info_[3].type = static_cast<int32_t>(torch::aot_inductor::ConstantType::Parameter);
    constants_info_[3].shape = {32};
    constants_info_[3].stride = {1};
    constants_info_[3].layout = static_cast<int32_t>(cached_torch_layout_strided);
    constants_info_[3].original_fqn = "o.bias";
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
    auto arg4_1 = std::move(inputs[0]);
    auto arg5_1 = std::move(inputs[1]);
    [[maybe_unused]] auto qkv_weight = constants_->at(0);
    [[maybe_unused]] auto qkv_bias = constants_->at(1);
    [[maybe_unused]] auto o_weight = constants_->at(2);
    [[maybe_unused]] auto o_bias = constants_->at(3);
    auto arg4_1_size = arg4_1.sizes();
    int64_t s0 = arg4_1_size[0];
    inputs.clear();
    auto& kernels = static_cast<AOTInductorModelKernels&>(*this->kernels_.get());
    const int64_t int_array_7[] = {5L*s0, 96L};
    static constexpr int64_t int_array_8[] = {96L, 1L};
    AtenTensorHandle buf0_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_7, int_array_8, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &buf0_handle));
    RAIIAtenTensorHandle buf0(buf0_handle);
    // Topologically Sorted Source Nodes: [linear], Original ATen: [aten.addmm]
    const int64_t int_array_0[] = {5L*s0, 32L};
    static constexpr int64_t int_array_1[] = {32L, 1L};
    auto tmp_tensor_handle_0 = reinterpret_tensor_wrapper(arg4_1, 2, int_array_0, int_array_1, 0L);
    RAIIAtenTensorHandle tmp_tensor_handle_0_raii(tmp_tensor_handle_0);
    static constexpr int64_t int_array_2[] = {32L, 96L};
    static constexpr int64_t int_array_3[] = {1L, 32L};
    auto tmp_tensor_handle_1 = reinterpret_tensor_wrapper(qkv_weight, 2, int_array_2, int_array_3, 0L);
    RAIIAtenTensorHandle tmp_tensor_handle_1_raii(tmp_tensor_handle_1);
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(buf0, qkv_bias, tmp_tensor_handle_0_raii, tmp_tensor_handle_1_raii, 1L, 1L));
    arg4_1.reset();
    static constexpr int64_t int_array_9[] = {5L, 5L};
    static constexpr int64_t int_array_10[] = {5L, 1L};
    AtenTensorHandle buf1_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_9, int_array_10, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &buf1_handle));
    RAIIAtenTensorHandle buf1(buf1_handle);
    cpp_fused__scaled_dot_product_flash_attention_for_cpu_scalar_tensor_where_0((const bool*)(arg5_1.data_ptr()), (float*)(buf1.data_ptr()));
    arg5_1.reset();
    // Topologically Sorted Source Nodes: [scaled_dot_product_attention], Original ATen: [aten.scalar_tensor, aten.where, aten._scaled_dot_product_flash_attention_for_cpu]
    const int64_t int_array_4[] = {s0, 4L, 5L, 8L};
    static constexpr int64_t int_array_5[] = {480L, 8L, 96L, 1L};
    auto tmp_tensor_handle_2 = reinterpret_tensor_wrapper(buf0, 4, int_array_4, int_array_5, 0L);
    RAIIAtenTensorHandle tmp_tensor_handle_2_raii(tmp_tensor_handle_2);
    auto tmp_tensor_handle_3 = reinterpret_tensor_wrapper(buf0, 4, int_array_4, int_array_5, 32L);
    RAIIAtenTensorHandle tmp_tensor_handle_3_raii(tmp_tensor_handle_3);
    auto tmp_tensor_handle_4 = reinterpret_tensor_wrapper(buf0, 4, int_array_4, int_array_5, 64L);
    RAIIAtenTensorHandle tmp_tensor_handle_4_raii(tmp_tensor_handle_4);
    AtenTensorHandle var_0 = buf1.get();
    AtenTensorHandle buf3_handle;
    AtenTensorHandle buf4_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu(tmp_tensor_handle_2_raii, tmp_tensor_handle_3_raii, tmp_tensor_handle_4_raii, 0.0, 0, &var_0, 0, &buf3_handle, &buf4_handle));
    RAIIAtenTensorHandle buf3(buf3_handle);
    RAIIAtenTensorHandle buf4(buf4_handle);
    buf0.reset();
    buf1.reset();

    const int64_t int_array_11[] = {5L*s0, 32L};
    static constexpr int64_t int_array_12[] = {32L, 1L};
    AtenTensorHandle buf5_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_11, int_array_12, cached_torch_dtype_float32, cached_torch_device_type_cpu, this->device_idx_, &buf5_handle));
    RAIIAtenTensorHandle buf5(buf5_handle);
    // Topologically Sorted Source Nodes: [linear_1], Original ATen: [aten.addmm]
    auto tmp_tensor_handle_5 = reinterpret_tensor_wrapper(buf3, 2, int_array_0, int_array_1, 0L);
    RAIIAtenTensorHandle tmp_tensor_handle_5_raii(tmp_tensor_handle_5);
    static constexpr int64_t int_array_6[] = {32L, 32L};
    auto tmp_tensor_handle_6 = reinterpret_tensor_wrapper(o_weight, 2, int_array_6, int_array_3, 0L);
    RAIIAtenTensorHandle tmp_tensor_handle_6_raii(tmp_tensor_handle_6);
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(buf5, o_bias, tmp_tensor_handle_5_raii, tmp_tensor_handle_6_raii, 1L, 1L));
    const int64_t int_array_13[] = {s0, 5L, 32L};
    static constexpr int64_t int_array_14[] = {160L, 32L, 1L};
    auto tmp_tensor_handle_7 = reinterpret_tensor_wrapper(buf5, 3, int_array_13, int_array_14, 0L);
    RAIIAtenTensorHandle tmp_tensor_handle_7_raii(tmp_tensor_handle_7);
    output_handles[0] = tmp_tensor_handle_7_raii.release();
} // AOTInductorModel::run_impl
} // namespace torch::aot_inductor
