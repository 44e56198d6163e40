# old.sh NAME H FAST AFTER HALF WR SZ SN BYTES
{ cat <<P
typedef unsigned int u32; typedef long long i64; typedef unsigned long long u64;
struct Arguments { const float *b0,*b1,*b2,*b3,*b4,*b5,*b6; float *b8,*b9; int b2_n1,b5_s0,b6_s0,b8_s0,b9_s0,b9_s1,p0,p1,offset_x; };
#define HIDDEN $2
#define STATES 32
#define FAST $3
#define RESET_AFTER $4
#define HALF_WEIGHTS $5
#define WARP_ROWS $6
#define SHARED_Z $7
#define SHARED_N $8
#define SHARED_BYTES $9
#define ENTRY rollout_cluster
P
cat src/forecast/rollout/cluster.cu; } > $1.cu
fl="-fmad=false -prec-div=true -prec-sqrt=true -ftz=false"; [ $3 = 1 ] && fl="-fmad=true -prec-div=false -prec-sqrt=false -ftz=true"
/usr/local/cuda/bin/nvcc -std=c++17 -cubin -gencode=arch=compute_90,code=sm_90 $fl $1.cu -o $1.cubin
