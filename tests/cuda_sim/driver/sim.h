/* Simulated CUDA: what the files of this driver share. ../simulation.py says what it cannot show.
 *
 * SIMCUDA_DEVICES=1         number of GPUs (0: none)
 * SIMCUDA_CC=9.0            their compute capability
 * SIMCUDA_MEMORY=bytes      their memory
 * SIMCUDA_DRIVER=13000      CUDA version that the driver serves
 * SIMCUDA_FAULT=kernel:code[:nth]   the nth launch of a kernel whose name contains the word faults while it runs
 * SIMCUDA_REFUSE=name:code[:nth]    the nth call of a function (or launch of a kernel) of that name is refused at once;
 *                           ``name$`` is the whole name
 * SIMCUDA_ONLY=file         SIMCUDA_FAULT only in code that was loaded from a file, as that of packages is: not while a
 *                           compile tries its kernels
 * SIMCUDA_ONLY=overlapping|default-stream   SIMCUDA_FAULT only where an earlier launch has not been waited for (and, with
 *                           default-stream, the kernel itself is on the default stream): a race
 * SIMCUDA_REACH=kernel:bytes        the kernel also touches the byte that far behind its first pointer: a fault where
 *                           that is outside of the block, which it is not in a large block of a caching allocator.
 *                           With SIMCUDA_FAULT=later:code the damage that went unnoticed shows there, and only then
 * SIMCUDA_HAZARD=kernel             what racecheck would report
 * SIMCUDA_TOOL=memcheck|...         as under compute-sanitizer (see ../tools), which writes to SIMCUDA_TOOL_LOG
 * SIMCUDA_SURFACE=sync|launch       a pending fault shows at the next synchronisation, or at the next launch already
 * SIMCUDA_STICKY_GETDEVICE=0|1      whether cudaGetDevice reports a fault of an earlier launch (1: torch aborts)
 * SIMCUDA_PROC=folder       what a read of /proc/driver/nvidia gets
 * SIMCUDA_LOG=file          one line per launch, module and fault
 */
#ifndef SIM_H
#define SIM_H
#define _GNU_SOURCE
#include <cuda.h>
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda_runtime_api.h>
#include <stddef.h>

#define API __attribute__((visibility("default")))
#define GATE() do { int refused_ = sim_gate(__func__); if (refused_) return refused_; } while (0)

enum { MANY_THREADS = 1024, SHARED_OPT_IN = 232448, SHARED_DEFAULT = 49152, MULTIPROCESSORS = 132 };

/* knobs.c */
const char *sim_knob(const char *name, const char *otherwise);
long long sim_number(const char *name, long long otherwise);
int sim_devices(void);
int sim_capability(void);            /* 90 for 9.0 */
int sim_planned(const char *knob, const char *name, long *seen); /* the error code when this is the planned call */
int sim_names(const char *knob, const char *name);               /* whether the name contains the word of the knob */
void sim_log(const char *format, ...);

/* errors.c: CUDA's rules. A fault is pending until it surfaces; from then on every call returns it. */
int sim_fail(int code);              /* remembers it as the last error; code itself is returned */
int sim_gate(const char *function);  /* before any call: refused, no device, or an earlier fault */
int sim_surface(void);               /* a synchronisation */
void sim_fault(int code, const char *kernel, const void *image, size_t size);
void sim_access(int code, const char *kernel, const void *image, size_t size, unsigned long long address);
int sim_sticky(void);
const char *sim_text(int code);

/* memory.c */
int sim_owns(unsigned long long address);  /* 1: device memory, 2: host memory that CUDA knows */
int sim_beyond(unsigned long long address, size_t bytes); /* whether that far behind it is not of the same block */
void sim_nearest(unsigned long long address, unsigned long long *start, size_t *size);
int sim_account(long long size);           /* memory taken or given back; 0 when there is not enough */
void sim_adopt(void *start, size_t size);
void sim_disown(void *start);

/* stream.c */
int sim_capturing(void);

/* tools.c: what NVIDIA's tools would write */
void sim_dump_core(int code, const char *kernel);
void sim_report_access(int code, const char *kernel, unsigned long long address);
void sim_report_hazard(const char *kernel);
int sim_under_tool(void);

/* launch.c */
void sim_waited(void);               /* nothing is under way any more */
int sim_launch(const char *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned threads, size_t shared);
#endif
