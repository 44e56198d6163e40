# build.sh NAME H FAST AFTER TENSOR RW SR SZ SN RR GR [extra]
set -e
n=$1; H=$2; F=$3; A=$4; T=$5; RW=$6
{ cat <<P
typedef unsigned int u32; typedef long long i64;
struct Arguments { const float *b0,*b1,*b2,*b3,*b4,*b5,*b6; float *b8,*b9; int b2_n1,b5_s0,b6_s0,b8_s0,b9_s0,b9_s1,p0,p1,offset_x; };
#define HIDDEN $H
#define STATES 32
#define RESET_AFTER $A
#define FAST $F
#define BOUNDED ${12:-$F}
#define TENSOR $T
#define ROW_WARPS $RW
#define SHARED_R $7
#define SHARED_Z $8
#define SHARED_N $9
#define ROW_REGISTERS ${10}
#define GATE_REGISTERS ${11}
#define SHARED_BYTES 232448

P
D=${SRC:-.}
rows=rows_fma; [ $T = 1 ] && rows=rows_tensor
cat $D/layout.cu $D/functions.cu $D/exchange.cu $D/$rows.cu $D/head.cu $D/gates.cu $D/kernel.cu
echo "__device__ int shared_size_rollout = sizeof(Shared);"
} > $n.cu
fl="-fmad=false -prec-div=true -prec-sqrt=true -ftz=false"; [ $F = 1 ] && fl="-fmad=true -prec-div=false -prec-sqrt=false -ftz=true"
/usr/local/cuda/bin/nvcc -std=c++17 -cubin -gencode=arch=compute_90a,code=sm_90a $fl -Xptxas -v $n.cu -o $n.cubin 2>&1 | grep -E "error|spill|registers" || true
