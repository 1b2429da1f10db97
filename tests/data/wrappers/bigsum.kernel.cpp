// Triton kernels are embedded as comments in /build/cache/crewbbhsw3y2zpmqcldnke4z7lhjzl2dqfybbk7vcseapm23ard4.wrapper.cpp

#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  cpp_fused_mul_sum_0(const float* in_ptr0,
                       const float* in_ptr1,
                       float* out_ptr0)
{
    std::atomic<int> inductor_cpu_integer_div_error{0};
    inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
    {
        {
            float tmp_acc0 = 0;
            at::vec::Vectorized<float> tmp_acc0_vec = at::vec::Vectorized<float>(0);
            at::vec::Vectorized<float> masked_tmp_acc0_vec = at::vec::Vectorized<float>(0);
            at::vec::Vectorized<float> tmp_acc0_vec_arr[2];
            for (int i = 0; i < 2; i++)
            {
                tmp_acc0_vec_arr[i] = at::vec::Vectorized<float>(0);
            }
            float tmp_acc0_arr[2];
            for (int i = 0; i < 2; i++)
            {
                tmp_acc0_arr[i] = 0;
            }
            at::vec::Vectorized<float> masked_tmp_acc0_vec_arr[2];
            for (int i = 0; i < 2; i++)
            {
                masked_tmp_acc0_vec_arr[i] = at::vec::Vectorized<float>(0);
            }
            #pragma omp parallel
            {
                int tid = omp_get_thread_num();
                CascadeSumHelper<float, 4096> scalar_cascade_helper0(static_cast<int64_t>(131072L));
                CascadeSumHelper<at::vec::Vectorized<float>, 4096> cascade_helper0(static_cast<int64_t>(8192L));
                CascadeSumHelper<at::vec::Vectorized<float>, 4096> masked_cascade_helper0(static_cast<int64_t>(0L));
                at::vec::Vectorized<float> tmp_acc0_vec_local = at::vec::Vectorized<float>(0);
                float tmp_acc0_local = 0;
                at::vec::Vectorized<float> masked_tmp_acc0_vec_local = at::vec::Vectorized<float>(0);
                #pragma omp for
                for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(262144L); x0+=static_cast<int64_t>(16L))
                {
                    {
                        if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(262144L)))
                        {
                            auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(16));
                            auto tmp1 = at::vec::Vectorized<float>::loadu(in_ptr1 + static_cast<int64_t>(x0), static_cast<int64_t>(16));
                            auto tmp2 = tmp0 * tmp1;
                            tmp_acc0_vec_local = cascade_sum_combine(tmp2, &cascade_helper0);
                        }
                    }
                }
                tmp_acc0_local = cascade_sum_final(&scalar_cascade_helper0);
                tmp_acc0_vec_local = cascade_sum_final(&cascade_helper0);
                masked_tmp_acc0_vec_local = cascade_sum_final(&masked_cascade_helper0);
                tmp_acc0_vec_arr[tid] = tmp_acc0_vec_local;
                tmp_acc0_arr[tid] = tmp_acc0_local;
                masked_tmp_acc0_vec_arr[tid] = masked_tmp_acc0_vec_local;
            }
            for (int tid = 0; tid < 2; tid++)
            {
                tmp_acc0_vec = tmp_acc0_vec + tmp_acc0_vec_arr[tid];
            }
            for (int tid = 0; tid < 2; tid++)
            {
                tmp_acc0 = tmp_acc0 + tmp_acc0_arr[tid];
            }
            for (int tid = 0; tid < 2; tid++)
            {
                masked_tmp_acc0_vec = masked_tmp_acc0_vec + masked_tmp_acc0_vec_arr[tid];
            }
            tmp_acc0 = tmp_acc0 + at::vec::vec_reduce_all<float, 1>([](at::vec::Vectorized<float>& x, at::vec::Vectorized<float>& y) { return x + y; }, tmp_acc0_vec + masked_tmp_acc0_vec);
            out_ptr0[static_cast<int64_t>(0L)] = static_cast<float>(tmp_acc0);
        }
    }
    inductor_cpu_integer_div_error_flag = nullptr;
    inductor_cpu_throw_if_integer_div_error(inductor_cpu_integer_div_error);
}

// Compile cmd
// g++ /build/cache/cu5e6kkydmrrwsa7xjcjvavgwocqvz2fqdgvu2kuapihpzvo33fx.kernel.cpp -D TORCH_INDUCTOR_CPP_WRAPPER -D STANDALONE_TORCH_HEADER -D  C10_USING_CUSTOM_GENERATED_MACROS -D CPU_CAPABILITY_AVX512  -O3 -DNDEBUG -fno-omit-frame-pointer -g1 -fno-trapping-math -funsafe-math-optimizations -ffinite-math-only -fno-signed-zeros -fno-finite-math-only -fno-unsafe-math-optimizations -fmath-errno -ffp-contract=off -fexcess-precision=fast -fno-tree-loop-vectorize -march=native -fPIC -Wall -std=c++20 -Wno-unused-variable -Wno-unknown-pragmas -pedantic -fopenmp  -include /build/cache/precompiled_headers/cpf7chm2ovbmyfvxcax3eileufeoymh2qrd4v4y6xsadwtxx5ru5.h -I/build/python/include/python3.11 -I/build/venv/lib/python3.11/site-packages/torch/include -I/build/venv/lib/python3.11/site-packages/torch/include/torch/csrc/api/include   -mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma -mavx512vnni -mavx512vl -mamx-tile -mamx-bf16 -mamx-int8 -mavx512bf16  -c -o /build/cache/cu5e6kkydmrrwsa7xjcjvavgwocqvz2fqdgvu2kuapihpzvo33fx.kernel.o
// Link cmd
// g++ /build/cache/crewbbhsw3y2zpmqcldnke4z7lhjzl2dqfybbk7vcseapm23ard4.wrapper.o /build/cache/cu5e6kkydmrrwsa7xjcjvavgwocqvz2fqdgvu2kuapihpzvo33fx.kernel.o /build/cache/crewbbhsw3y2zpmqcldnke4z7lhjzl2dqfybbk7vcseapm23ard4/cgxre62qccm2hvjt32u3oobekucw5zks6ukxlzod6km7a4telymf.weights.o -D TORCH_INDUCTOR_CPP_WRAPPER -D STANDALONE_TORCH_HEADER -D  C10_USING_CUSTOM_GENERATED_MACROS -D CPU_CAPABILITY_AVX512  -O3 -DNDEBUG -fno-omit-frame-pointer -g1 -fno-trapping-math -funsafe-math-optimizations -ffinite-math-only -fno-signed-zeros -fno-finite-math-only -fno-unsafe-math-optimizations -fmath-errno -ffp-contract=off -fexcess-precision=fast -fno-tree-loop-vectorize -march=native -shared -fPIC -Wall -std=c++20 -Wno-unused-variable -Wno-unknown-pragmas -pedantic -fopenmp  -I/build/python/include/python3.11 -I/build/venv/lib/python3.11/site-packages/torch/include -I/build/venv/lib/python3.11/site-packages/torch/include/torch/csrc/api/include   -mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma -mavx512vnni -mavx512vl -mamx-tile -mamx-bf16 -mamx-int8 -mavx512bf16  -o /build/cache/crewbbhsw3y2zpmqcldnke4z7lhjzl2dqfybbk7vcseapm23ard4.wrapper.so  -ltorch -ltorch_cpu -lgomp  -L/build/python/lib -L/build/venv/lib/python3.11/site-packages/torch/lib 
