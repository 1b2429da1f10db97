// Triton kernels are embedded as comments in /build/cache/ci5uxvhtsc4ze3cdnc62h32tqxzsvlmza3v6iw4evrustvd4yjn6.wrapper.cpp

#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  cpp_fused__to_copy_add_clamp_constant_pad_nd_embedding_index_mul_slice_0(const int64_t* in_ptr0,
                       const float* in_ptr1,
                       const float* in_ptr2,
                       float* out_ptr0,
                       float* out_ptr1,
                       float* out_ptr2)
{
    std::atomic<int> inductor_cpu_integer_div_error{0};
    inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
    {
        #pragma GCC ivdep
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(4L); x0+=static_cast<int64_t>(1L))
        {
            #pragma GCC ivdep
            for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(7L); x1+=static_cast<int64_t>(1L))
            {
                for(int64_t x2=static_cast<int64_t>(0L); x2<static_cast<int64_t>(16L); x2+=static_cast<int64_t>(16L))
                {
                    {
                        if(C10_LIKELY(x2 >= static_cast<int64_t>(0) && x2 < static_cast<int64_t>(16L)))
                        {
                            auto tmp0 = in_ptr0[static_cast<int64_t>(x1 + 8L*x0)];
                            auto tmp1 = static_cast<int64_t>(2);
                            auto tmp2 = int64_t(tmp0 + tmp1);
                            auto tmp3 = tmp2;
                            auto tmp4 = c10::convert<int64_t>(tmp3);
                            AOTI_TORCH_CHECK((0 <= tmp4) & (tmp4 < 100L), "index out of bounds: 0 <= tmp4 < 100L");
                            auto tmp6 = at::vec::Vectorized<float>::loadu(in_ptr1 + static_cast<int64_t>(x2 + 16L*tmp2), static_cast<int64_t>(16));
                            tmp6.store(out_ptr0 + static_cast<int64_t>(x2 + 16L*x1 + 112L*x0));
                        }
                    }
                }
            }
        }
    }
    {
        #pragma GCC ivdep
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(4L); x0+=static_cast<int64_t>(1L))
        {
            for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(8L); x1+=static_cast<int64_t>(16L))
            {
                {
                    if(C10_LIKELY(x1 >= static_cast<int64_t>(0L) && x1 < static_cast<int64_t>(8L)))
                    {
                        auto tmp26 = at::vec::VectorizedN<int64_t,2>::loadu(in_ptr0 + static_cast<int64_t>(x1 + 8L*x0), static_cast<int64_t>(8L));
                        auto tmp0 = x1;
                        auto tmp1 = c10::convert<int64_t>(tmp0);
                        auto tmp2 = at::vec::VectorizedN<int64_t,2>::arange(tmp1, 1);
                        auto tmp3 = static_cast<int64_t>(7);
                        auto tmp4 = at::vec::VectorizedN<int64_t,2>(tmp3);
                        auto tmp5 = at::vec::VecMask<int64_t,2>(tmp2 < tmp4);
                        auto tmp6 = [&]
                        {
                            auto tmp7 = tmp5.template cast<float,1>().template loadu<int64_t,2>(in_ptr0 + static_cast<int64_t>(x1 + 8L*x0));
                            auto tmp8 = static_cast<int64_t>(-5);
                            auto tmp9 = at::vec::VectorizedN<int64_t,2>(tmp8);
                            auto tmp10 = at::vec::maximum(tmp7, tmp9);
                            auto tmp11 = 100L;
                            auto tmp12 = c10::convert<int64_t>(tmp11);
                            auto tmp13 = at::vec::VectorizedN<int64_t,2>(tmp12);
                            auto tmp14 = tmp10 + tmp13;
                            auto tmp15 = static_cast<int64_t>(0);
                            auto tmp16 = at::vec::VectorizedN<int64_t,2>(tmp15);
                            auto tmp17 = at::vec::VecMask<int64_t,2>(tmp10 < tmp16);
                            auto tmp18 = decltype(tmp14)::blendv(tmp10, tmp14, tmp17.template cast<int64_t,2>());
                            auto tmp19 =
                            [&]
                            {
                                __at_align__ std::array<int64_t, 16> tmpbuf;
                                tmp18.store(tmpbuf.data(), static_cast<int64_t>(8L));
                                return tmpbuf;
                            }
                            ()
                            ;
                            auto tmp20 =
                            [&]
                            {
                                __at_align__ std::array<int64_t, 16> tmpbuf;
                                #pragma GCC unroll 16
                                for (long x1_inner = 0; x1_inner < static_cast<int64_t>(8L); x1_inner++)
                                {
                                    if (tmp5.is_masked(x1_inner))
                                    {
                                        tmpbuf[x1_inner] = static_cast<int64_t>(tmp19[x1_inner]);
                                    }
                                }
                                return at::vec::VectorizedN<int64_t,2>::loadu(tmpbuf.data(), static_cast<int64_t>(8L));
                            }
                            ()
                            ;
                            AOTI_TORCH_CHECK((at::vec::VecMask<int64_t,2>::set(at::vec::VecMask<int64_t,2>::from(1), ((at::vec::VecMask<int64_t,2>((at::vec::VectorizedN<int64_t,2>(0) <= tmp20) & (tmp20 < at::vec::VectorizedN<int64_t,2>(100L)))) | ~(tmp5)), static_cast<int64_t>(8L))).all_masked(), "index out of bounds: 0 <= tmp20 < 100L");
                            auto tmp22 =
                            [&]
                            {
                                __at_align__ std::array<float, 16> tmpbuf;
                                #pragma GCC unroll 16
                                for (long x1_inner = 0; x1_inner < static_cast<int64_t>(8L); x1_inner++)
                                {
                                    if (tmp5.is_masked(x1_inner))
                                    {
                                        tmpbuf[x1_inner] = in_ptr2[static_cast<int64_t>(tmp19[x1_inner])];
                                    }
                                }
                                return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(8L));
                            }
                            ()
                            ;
                            return tmp22;
                        }
                        ;
                        auto tmp25 =
                        [&]
                        {
                            if (tmp5.all_zero())
                            {
                                return at::vec::Vectorized<float>(static_cast<float>(0.0));
                            }
                            else
                            {
                                auto tmp23 = tmp6();
                                auto tmp24 = at::vec::Vectorized<float>(static_cast<float>(0.0));
                                return decltype(tmp23)::blendv(tmp24, tmp23, tmp5.template cast<float,1>());
                            }
                        }
                        ()
                        ;
                        auto tmp27 = at::vec::convert<int32_t,1,int64_t,2>(tmp26);
                        auto tmp28 = static_cast<int32_t>(2);
                        auto tmp29 = at::vec::Vectorized<int32_t>(tmp28);
                        auto tmp30 = tmp27 * tmp29;
                        auto tmp31 = 100L;
                        auto tmp32 = c10::convert<int64_t>(tmp31);
                        auto tmp33 = at::vec::convert<int64_t,2,int32_t,1>(tmp30);
                        auto tmp34 = at::vec::VectorizedN<int64_t,2>(tmp32);
                        auto tmp35 = tmp33 + tmp34;
                        auto tmp36 = static_cast<int64_t>(0);
                        auto tmp37 = at::vec::VectorizedN<int64_t,2>(tmp36);
                        auto tmp38 = at::vec::VecMask<int64_t,2>(tmp33 < tmp37);
                        auto tmp39 = decltype(tmp35)::blendv(tmp33, tmp35, tmp38.template cast<int64_t,2>());
                        auto tmp40 =
                        [&]
                        {
                            __at_align__ std::array<int64_t, 16> tmpbuf;
                            tmp39.store(tmpbuf.data(), static_cast<int64_t>(8L));
                            return tmpbuf;
                        }
                        ()
                        ;
                        auto tmp41 =
                        [&]
                        {
                            __at_align__ std::array<int64_t, 16> tmpbuf;
                            #pragma GCC unroll 16
                            for (long x1_inner = 0; x1_inner < static_cast<int64_t>(8L); x1_inner++)
                            {
                                tmpbuf[x1_inner] = static_cast<int64_t>(tmp40[x1_inner]);
                            }
                            return at::vec::VectorizedN<int64_t,2>::loadu(tmpbuf.data(), static_cast<int64_t>(8L));
                        }
                        ()
                        ;
                        AOTI_TORCH_CHECK((at::vec::VecMask<int64_t,2>::set(at::vec::VecMask<int64_t,2>::from(1), (at::vec::VecMask<int64_t,2>((at::vec::VectorizedN<int64_t,2>(0) <= tmp41) & (tmp41 < at::vec::VectorizedN<int64_t,2>(100L)))), static_cast<int64_t>(8L))).all_masked(), "index out of bounds: 0 <= tmp41 < 100L");
                        auto tmp43 =
                        [&]
                        {
                            __at_align__ std::array<float, 16> tmpbuf;
                            #pragma GCC unroll 16
                            for (long x1_inner = 0; x1_inner < static_cast<int64_t>(8L); x1_inner++)
                            {
                                tmpbuf[x1_inner] = in_ptr2[static_cast<int64_t>(tmp40[x1_inner])];
                            }
                            return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(8L));
                        }
                        ()
                        ;
                        tmp25.store(out_ptr1 + static_cast<int64_t>(x1 + 8L*x0), static_cast<int64_t>(8L));
                        tmp43.store(out_ptr2 + static_cast<int64_t>(x1 + 8L*x0), static_cast<int64_t>(8L));
                    }
                }
            }
        }
    }
    inductor_cpu_integer_div_error_flag = nullptr;
    inductor_cpu_throw_if_integer_div_error(inductor_cpu_integer_div_error);
}

