// Triton kernels are embedded as comments in /build/cache/c4xmjatoqqczom2gw4pql5d2yf4vgpvd3ckafdr6zg2dxm6qo46k.wrapper.cpp

#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  cpp_fused_add_native_dropout_rand_like_0(float* in_out_ptr0,
                       const int64_t* in_ptr0,
                       const float* in_ptr1)
{
    std::atomic<int> inductor_cpu_integer_div_error{0};
    inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
    #pragma omp parallel
    {
        int tid = omp_get_thread_num();
        {
            #pragma omp for
            for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(4096L); x0+=static_cast<int64_t>(16L))
            {
                {
                    if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(4096L)))
                    {
                        auto tmp0 = in_ptr0[static_cast<int64_t>(0L)];
                        auto tmp6 = in_ptr0[static_cast<int64_t>(1L)];
                        auto tmp12 = at::vec::Vectorized<float>::loadu(in_ptr1 + static_cast<int64_t>(x0), static_cast<int64_t>(16));
                        auto tmp1 = x0;
                        auto tmp2 = c10::convert<int32_t>(tmp1);
                        auto tmp3 = at::vec::Vectorized<int32_t>::arange(tmp2, 1);
                        auto tmp4 = at::vec::convert<int64_t,2,int32_t,1>(tmp3);
                        auto tmp5 =
                        [&]()
                        {
                            int64_t offset[16];
                            float result[16];
                            tmp4.store(offset);
                            for( int64_t offset_idx = 0; offset_idx < 16; offset_idx++ )
                            {
                                result[offset_idx] = normalized_rand_cpu(tmp0, offset[offset_idx]);
                            }
                            return at::vec::Vectorized<float>::loadu(result);
                        }
                        ()
                        ;
                        auto tmp7 =
                        [&]()
                        {
                            int64_t offset[16];
                            float result[16];
                            tmp4.store(offset);
                            for( int64_t offset_idx = 0; offset_idx < 16; offset_idx++ )
                            {
                                result[offset_idx] = normalized_rand_cpu(tmp6, offset[offset_idx]);
                            }
                            return at::vec::Vectorized<float>::loadu(result);
                        }
                        ()
                        ;
                        auto tmp8 = static_cast<float>(0.5);
                        auto tmp9 = at::vec::Vectorized<float>(tmp8);
                        auto tmp10 = at::vec::VecMask<float,1>(tmp5 > tmp9);
                        auto tmp11 = tmp10.to<float,1>();
                        auto tmp13 = tmp11 * tmp12;
                        auto tmp14 = static_cast<float>(2.0);
                        auto tmp15 = at::vec::Vectorized<float>(tmp14);
                        auto tmp16 = tmp13 * tmp15;
                        auto tmp17 = tmp16 + tmp7;
                        tmp17.store(in_out_ptr0 + static_cast<int64_t>(x0));
                    }
                }
            }
        }
    }
    inductor_cpu_integer_div_error_flag = nullptr;
    inductor_cpu_throw_if_integer_div_error(inductor_cpu_integer_div_error);
}

// Compile cmd
// g++ /build/cache/cjnqt4ly7zyqudwapnpkstki6enjo7iro3iq2vqlolbervf3k7ck.kernel.cpp -D TORCH_INDUCTOR_CPP_WRAPPER -D STANDALONE_TORCH_HEADER -D  C10_USING_CUSTOM_GENERATED_MACROS -D CPU_CAPABILITY_AVX512  -O3 -DNDEBUG -fno-omit-frame-pointer -g1 -fno-trapping-math -funsafe-math-optimizations -ffinite-math-only -fno-signed-zeros -fno-finite-math-only -fno-unsafe-math-optimizations -fmath-errno -ffp-contract=off -fexcess-precision=fast -fno-tree-loop-vectorize -march=native -fPIC -Wall -std=c++20 -Wno-unused-variable -Wno-unknown-pragmas -pedantic -fopenmp  -include /build/cache/precompiled_headers/cpf7chm2ovbmyfvxcax3eileufeoymh2qrd4v4y6xsadwtxx5ru5.h -I/build/python/include/python3.11 -I/build/venv/lib/python3.11/site-packages/torch/include -I/build/venv/lib/python3.11/site-packages/torch/include/torch/csrc/api/include   -mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma -mavx512vnni -mavx512vl -mamx-tile -mamx-bf16 -mamx-int8 -mavx512bf16  -c -o /build/cache/cjnqt4ly7zyqudwapnpkstki6enjo7iro3iq2vqlolbervf3k7ck.kernel.o
// Link cmd
// g++ /build/cache/c4xmjatoqqczom2gw4pql5d2yf4vgpvd3ckafdr6zg2dxm6qo46k.wrapper.o /build/cache/cjnqt4ly7zyqudwapnpkstki6enjo7iro3iq2vqlolbervf3k7ck.kernel.o /build/cache/c4xmjatoqqczom2gw4pql5d2yf4vgpvd3ckafdr6zg2dxm6qo46k/cgxre62qccm2hvjt32u3oobekucw5zks6ukxlzod6km7a4telymf.weights.o -D TORCH_INDUCTOR_CPP_WRAPPER -D STANDALONE_TORCH_HEADER -D  C10_USING_CUSTOM_GENERATED_MACROS -D CPU_CAPABILITY_AVX512  -O3 -DNDEBUG -fno-omit-frame-pointer -g1 -fno-trapping-math -funsafe-math-optimizations -ffinite-math-only -fno-signed-zeros -fno-finite-math-only -fno-unsafe-math-optimizations -fmath-errno -ffp-contract=off -fexcess-precision=fast -fno-tree-loop-vectorize -march=native -shared -fPIC -Wall -std=c++20 -Wno-unused-variable -Wno-unknown-pragmas -pedantic -fopenmp  -I/build/python/include/python3.11 -I/build/venv/lib/python3.11/site-packages/torch/include -I/build/venv/lib/python3.11/site-packages/torch/include/torch/csrc/api/include   -mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma -mavx512vnni -mavx512vl -mamx-tile -mamx-bf16 -mamx-int8 -mavx512bf16  -o /build/cache/c4xmjatoqqczom2gw4pql5d2yf4vgpvd3ckafdr6zg2dxm6qo46k.wrapper.so  -ltorch -ltorch_cpu -lgomp  -L/build/python/lib -L/build/venv/lib/python3.11/site-packages/torch/lib 
