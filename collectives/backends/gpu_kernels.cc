// Made by gpu_kernels.py from gpu_loops.h; not to be changed by hand.
#include "collectives/backends/gpu_kernels.h"

namespace muster::collectives::gpu {

// clang-format off
const char* const kKernels = R"ptx(.version 6.0
.target sm_70
.address_size 64
.visible .entry add_fixed(
.param .u64 add_fixed_param_0,
.param .u64 add_fixed_param_1,
.param .u64 add_fixed_param_2,
.param .f64 add_fixed_param_3,
.param .u32 add_fixed_param_4,
.param .u32 add_fixed_param_5,
.param .u64 add_fixed_param_6
)
{
.reg .pred  %p<4>; .reg .b32  %r<8>; .reg .f32  %f<2>; .reg .b64  %rd<19>; .reg .f64  %fd<5>;
ld.param.u64  %rd9, [add_fixed_param_0]; mov.u32  %r3, %ctaid.x; mov.u32  %r4, %ntid.x;
mul.wide.u32  %rd10, %r3, %r4; mov.u32  %r5, %tid.x; cvt.u64.u32  %rd11, %r5;
add.s64  %rd1, %rd10, %rd11; setp.ge.u64  %p1, %rd1, %rd9; @%p1 bra  $L__BB0_6;
ld.param.u32  %r1, [add_fixed_param_4]; ld.param.u64  %rd6, [add_fixed_param_1];
shl.b64  %rd12, %rd1, 2; add.s64  %rd13, %rd6, %rd12; ld.global.f32  %f1, [%rd13];
mov.b32  %r6, %f1; and.b32   %r7, %r6, 2147483647; setp.lt.u32  %p2, %r7, %r1; @%p2 bra  $L__BB0_3;
bra.uni  $L__BB0_2;
$L__BB0_3:
ld.param.u32  %r2, [add_fixed_param_5]; ld.param.f64  %fd1, [add_fixed_param_3];
ld.param.u64  %rd7, [add_fixed_param_2]; setp.ne.s32  %p3, %r2, 0; cvt.f64.f32  %fd2, %f1;
mul.rn.f64  %fd3, %fd2, %fd1; add.rn.f64  %fd4, %fd3, 0d4338000000000000; mov.b64  %rd15, %fd4;
add.s64  %rd18, %rd15, -4843621399236968448; shl.b64  %rd16, %rd1, 3; add.s64  %rd3, %rd7, %rd16;
@%p3 bra  $L__BB0_5; ld.global.u64  %rd17, [%rd3]; add.s64  %rd18, %rd17, %rd18;
$L__BB0_5:
st.global.u64  [%rd3], %rd18; bra.uni  $L__BB0_6;
$L__BB0_2:
ld.param.u64  %rd8, [add_fixed_param_6]; atom.global.min.u64  %rd14, [%rd8], %rd1;
$L__BB0_6:
ret;
}
.visible .entry add_float(
.param .u64 add_float_param_0,
.param .u64 add_float_param_1,
.param .u64 add_float_param_2,
.param .u32 add_float_param_3,
.param .u64 add_float_param_4
)
{
.reg .pred  %p<4>; .reg .b32  %r<7>; .reg .f32  %f<7>; .reg .b64  %rd<17>;
ld.param.u64  %rd5, [add_float_param_0]; mov.u32  %r2, %ctaid.x; mov.u32  %r3, %ntid.x;
mul.wide.u32  %rd6, %r2, %r3; mov.u32  %r4, %tid.x; cvt.u64.u32  %rd7, %r4;
add.s64  %rd1, %rd6, %rd7; setp.ge.u64  %p1, %rd1, %rd5; @%p1 bra  $L__BB1_6;
ld.param.u32  %r1, [add_float_param_3]; ld.param.u64  %rd3, [add_float_param_2];
ld.param.u64  %rd2, [add_float_param_1]; setp.eq.s32  %p2, %r1, 0; shl.b64  %rd16, %rd1, 2;
@%p2 bra  $L__BB1_3; add.s64  %rd9, %rd2, %rd16; ld.global.f32  %f6, [%rd9]; bra.uni  $L__BB1_4;
$L__BB1_3:
add.s64  %rd11, %rd3, %rd16; ld.global.f32  %f4, [%rd11]; add.s64  %rd12, %rd2, %rd16;
ld.global.f32  %f5, [%rd12]; add.rn.f32  %f6, %f4, %f5;
$L__BB1_4:
add.s64  %rd14, %rd3, %rd16; st.global.f32  [%rd14], %f6; mov.b32  %r5, %f6;
and.b32   %r6, %r5, 2147483647; setp.lt.s32  %p3, %r6, 2139095040; @%p3 bra  $L__BB1_6;
ld.param.u64  %rd4, [add_float_param_4]; atom.global.min.u64  %rd15, [%rd4], %rd1;
$L__BB1_6:
ret;
}
.visible .entry to_bfloat16(
.param .u64 to_bfloat16_param_0,
.param .u64 to_bfloat16_param_1,
.param .u64 to_bfloat16_param_2,
.param .u64 to_bfloat16_param_3
)
{
.reg .pred  %p<3>; .reg .b32  %r<12>; .reg .f32  %f<3>; .reg .b64  %rd<13>;
ld.param.u64  %rd5, [to_bfloat16_param_0]; mov.u32  %r1, %ctaid.x; mov.u32  %r2, %ntid.x;
mul.wide.u32  %rd6, %r1, %r2; mov.u32  %r3, %tid.x; cvt.u64.u32  %rd7, %r3;
add.s64  %rd1, %rd6, %rd7; setp.ge.u64  %p1, %rd1, %rd5; @%p1 bra  $L__BB2_3;
ld.param.u64  %rd3, [to_bfloat16_param_2]; ld.param.u64  %rd2, [to_bfloat16_param_1];
shl.b64  %rd8, %rd1, 2; add.s64  %rd9, %rd2, %rd8; ld.global.f32  %f1, [%rd9]; mov.b32  %r4, %f1;
bfe.u32  %r5, %r4, 16, 1; add.s32  %r6, %r4, %r5; add.s32  %r7, %r6, 32767; shr.u32  %r8, %r7, 16;
shl.b64  %rd10, %rd1, 1; add.s64  %rd11, %rd3, %rd10; st.global.u16  [%rd11], %r8;
and.b32   %r9, %r7, 2147418112; and.b32   %r10, %r4, 2147483647; max.s32  %r11, %r9, %r10;
setp.lt.s32  %p2, %r11, 2139095040; @%p2 bra  $L__BB2_3; ld.param.u64  %rd4, [to_bfloat16_param_3];
atom.global.min.u64  %rd12, [%rd4], %rd1;
$L__BB2_3:
ret;
}
.visible .entry from_fixed(
.param .u64 from_fixed_param_0,
.param .u64 from_fixed_param_1,
.param .u64 from_fixed_param_2,
.param .f64 from_fixed_param_3
)
{
.reg .pred  %p<2>; .reg .b32  %r<4>; .reg .f32  %f<2>; .reg .b64  %rd<12>; .reg .f64  %fd<4>;
ld.param.u64  %rd4, [from_fixed_param_0]; mov.u32  %r1, %ctaid.x; mov.u32  %r2, %ntid.x;
mul.wide.u32  %rd5, %r1, %r2; mov.u32  %r3, %tid.x; cvt.u64.u32  %rd6, %r3;
add.s64  %rd1, %rd5, %rd6; setp.ge.u64  %p1, %rd1, %rd4; @%p1 bra  $L__BB3_2;
ld.param.f64  %fd1, [from_fixed_param_3]; ld.param.u64  %rd3, [from_fixed_param_2];
ld.param.u64  %rd2, [from_fixed_param_1]; shl.b64  %rd7, %rd1, 3; add.s64  %rd8, %rd2, %rd7;
ld.global.u64  %rd9, [%rd8]; cvt.rn.f64.s64  %fd2, %rd9; mul.rn.f64  %fd3, %fd2, %fd1;
cvt.rn.f32.f64  %f1, %fd3; shl.b64  %rd10, %rd1, 2; add.s64  %rd11, %rd3, %rd10;
st.global.f32  [%rd11], %f1;
$L__BB3_2:
ret;
}
.visible .entry from_bfloat16(
.param .u64 from_bfloat16_param_0,
.param .u64 from_bfloat16_param_1,
.param .u64 from_bfloat16_param_2,
.param .u64 from_bfloat16_param_3
)
{
.reg .pred  %p<3>; .reg .b32  %r<7>; .reg .b64  %rd<13>;
ld.param.u64  %rd5, [from_bfloat16_param_0]; mov.u32  %r1, %ctaid.x; mov.u32  %r2, %ntid.x;
mul.wide.u32  %rd6, %r1, %r2; mov.u32  %r3, %tid.x; cvt.u64.u32  %rd7, %r3;
add.s64  %rd1, %rd6, %rd7; setp.ge.u64  %p1, %rd1, %rd5; @%p1 bra  $L__BB4_3;
ld.param.u64  %rd3, [from_bfloat16_param_2]; ld.param.u64  %rd2, [from_bfloat16_param_1];
shl.b64  %rd8, %rd1, 1; add.s64  %rd9, %rd2, %rd8; ld.global.u16  %r4, [%rd9];
shl.b32  %r5, %r4, 16; shl.b64  %rd10, %rd1, 2; add.s64  %rd11, %rd3, %rd10;
st.global.u32  [%rd11], %r5; and.b32   %r6, %r5, 2147418112; setp.lt.s32  %p2, %r6, 2139095040;
@%p2 bra  $L__BB4_3; ld.param.u64  %rd4, [from_bfloat16_param_3];
atom.global.min.u64  %rd12, [%rd4], %rd1;
$L__BB4_3:
ret;
}
.visible .entry from_float(
.param .u64 from_float_param_0,
.param .u64 from_float_param_1,
.param .u64 from_float_param_2,
.param .u64 from_float_param_3
)
{
.reg .pred  %p<3>; .reg .b32  %r<6>; .reg .f32  %f<2>; .reg .b64  %rd<12>;
ld.param.u64  %rd5, [from_float_param_0]; mov.u32  %r1, %ctaid.x; mov.u32  %r2, %ntid.x;
mul.wide.u32  %rd6, %r1, %r2; mov.u32  %r3, %tid.x; cvt.u64.u32  %rd7, %r3;
add.s64  %rd1, %rd6, %rd7; setp.ge.u64  %p1, %rd1, %rd5; @%p1 bra  $L__BB5_3;
ld.param.u64  %rd3, [from_float_param_2]; ld.param.u64  %rd2, [from_float_param_1];
shl.b64  %rd8, %rd1, 2; add.s64  %rd9, %rd2, %rd8; ld.global.f32  %f1, [%rd9]; mov.b32  %r4, %f1;
add.s64  %rd10, %rd3, %rd8; st.global.f32  [%rd10], %f1; and.b32   %r5, %r4, 2147483647;
setp.lt.s32  %p2, %r5, 2139095040; @%p2 bra  $L__BB5_3; ld.param.u64  %rd4, [from_float_param_3];
atom.global.min.u64  %rd11, [%rd4], %rd1;
$L__BB5_3:
ret;
}
.visible .entry digest_16(
.param .u64 digest_16_param_0,
.param .u64 digest_16_param_1,
.param .u64 digest_16_param_2
)
{
.reg .pred  %p<6>; .reg .b32  %r<5>; .reg .b64  %rd<104>; ld.param.u64  %rd41, [digest_16_param_2];
ld.param.u64  %rd39, [digest_16_param_0]; mov.u32  %r2, %ntid.x; mov.u32  %r3, %ctaid.x;
mul.wide.u32  %rd102, %r3, %r2; mov.u32  %r4, %tid.x; cvt.u64.u32  %rd5, %r4;
add.s64  %rd6, %rd102, %rd5; setp.ge.u64  %p1, %rd6, %rd39; mov.u64  %rd96, 0; @%p1 bra  $L__BB6_6;
ld.param.u64  %rd40, [digest_16_param_1]; mov.u32  %r1, %nctaid.x; cvt.u64.u32  %rd1, %r1;
cvt.u64.u32  %rd2, %r2; cvt.u64.u32  %rd3, %r3; mul.lo.s64  %rd44, %rd1, %rd2;
shl.b64  %rd7, %rd44, 2; mul.lo.s64  %rd45, %rd1, 3; add.s64  %rd46, %rd45, %rd3;
mul.lo.s64  %rd100, %rd46, %rd2; mul.lo.s64  %rd47, %rd100, 7046029254386353131;
mov.u64  %rd48, -7046029254386353131; sub.s64  %rd9, %rd48, %rd47;
mul.lo.s64  %rd101, %rd5, -7046029254386353131; mul.lo.s64  %rd11, %rd44, 8709371129873690708;
shl.b64  %rd49, %rd1, 1; add.s64  %rd50, %rd49, %rd3; mul.lo.s64  %rd99, %rd50, %rd2;
mul.lo.s64  %rd51, %rd99, 7046029254386353131; sub.s64  %rd13, %rd48, %rd51;
add.s64  %rd52, %rd3, %rd1; mul.lo.s64  %rd98, %rd52, %rd2;
mul.lo.s64  %rd53, %rd98, 7046029254386353131; sub.s64  %rd15, %rd48, %rd53;
mul.lo.s64  %rd16, %rd44, 6; shl.b64  %rd54, %rd6, 1; add.s64  %rd97, %rd40, %rd54;
shl.b64  %rd18, %rd44, 3; shl.b64  %rd19, %rd44, 1; mul.lo.s64  %rd55, %rd102, 7046029254386353131;
sub.s64  %rd20, %rd48, %rd55; mov.u64  %rd96, 0;
$L__BB6_2:
.pragma "nounroll"; ld.global.u16  %rd56, [%rd97]; add.s64  %rd57, %rd20, %rd101;
shr.u64  %rd58, %rd57, 32; xor.b64   %rd59, %rd58, %rd56; xor.b64   %rd60, %rd59, %rd57;
mul.lo.s64  %rd61, %rd60, -4417276706812531889; shr.u64  %rd62, %rd61, 29;
xor.b64   %rd63, %rd62, %rd61; add.s64  %rd96, %rd63, %rd96; add.s64  %rd64, %rd5, %rd98;
setp.ge.u64  %p2, %rd64, %rd39; @%p2 bra  $L__BB6_6; add.s64  %rd65, %rd97, %rd19;
ld.global.u16  %rd66, [%rd65]; add.s64  %rd67, %rd15, %rd101; shr.u64  %rd68, %rd67, 32;
xor.b64   %rd69, %rd68, %rd66; xor.b64   %rd70, %rd69, %rd67;
mul.lo.s64  %rd71, %rd70, -4417276706812531889; shr.u64  %rd72, %rd71, 29;
xor.b64   %rd73, %rd72, %rd71; add.s64  %rd96, %rd73, %rd96; add.s64  %rd74, %rd5, %rd99;
setp.ge.u64  %p3, %rd74, %rd39; @%p3 bra  $L__BB6_6; add.s64  %rd75, %rd97, %rd7;
ld.global.u16  %rd76, [%rd75]; add.s64  %rd77, %rd13, %rd101; shr.u64  %rd78, %rd77, 32;
xor.b64   %rd79, %rd78, %rd76; xor.b64   %rd80, %rd79, %rd77;
mul.lo.s64  %rd81, %rd80, -4417276706812531889; shr.u64  %rd82, %rd81, 29;
xor.b64   %rd83, %rd82, %rd81; add.s64  %rd96, %rd83, %rd96; add.s64  %rd84, %rd5, %rd100;
setp.ge.u64  %p4, %rd84, %rd39; @%p4 bra  $L__BB6_6; add.s64  %rd85, %rd97, %rd16;
ld.global.u16  %rd86, [%rd85]; add.s64  %rd87, %rd9, %rd101; shr.u64  %rd88, %rd87, 32;
xor.b64   %rd89, %rd88, %rd86; xor.b64   %rd90, %rd89, %rd87;
mul.lo.s64  %rd91, %rd90, -4417276706812531889; shr.u64  %rd92, %rd91, 29;
xor.b64   %rd93, %rd92, %rd91; add.s64  %rd96, %rd93, %rd96; add.s64  %rd102, %rd102, %rd7;
add.s64  %rd94, %rd5, %rd102; add.s64  %rd101, %rd101, %rd11; add.s64  %rd100, %rd100, %rd7;
add.s64  %rd99, %rd99, %rd7; add.s64  %rd98, %rd98, %rd7; add.s64  %rd97, %rd97, %rd18;
setp.lt.u64  %p5, %rd94, %rd39; @%p5 bra  $L__BB6_2;
$L__BB6_6:
atom.global.add.u64  %rd95, [%rd41], %rd96; ret;
}
.visible .entry digest_32(
.param .u64 digest_32_param_0,
.param .u64 digest_32_param_1,
.param .u64 digest_32_param_2
)
{
.reg .pred  %p<6>; .reg .b32  %r<5>; .reg .b64  %rd<104>; ld.param.u64  %rd41, [digest_32_param_2];
ld.param.u64  %rd39, [digest_32_param_0]; mov.u32  %r2, %ntid.x; mov.u32  %r3, %ctaid.x;
mul.wide.u32  %rd102, %r3, %r2; mov.u32  %r4, %tid.x; cvt.u64.u32  %rd5, %r4;
add.s64  %rd6, %rd102, %rd5; setp.ge.u64  %p1, %rd6, %rd39; mov.u64  %rd96, 0; @%p1 bra  $L__BB7_6;
ld.param.u64  %rd40, [digest_32_param_1]; mov.u32  %r1, %nctaid.x; cvt.u64.u32  %rd1, %r1;
cvt.u64.u32  %rd2, %r2; cvt.u64.u32  %rd3, %r3; mul.lo.s64  %rd44, %rd1, %rd2;
shl.b64  %rd7, %rd44, 2; mul.lo.s64  %rd45, %rd1, 3; add.s64  %rd46, %rd45, %rd3;
mul.lo.s64  %rd100, %rd46, %rd2; mul.lo.s64  %rd47, %rd100, 7046029254386353131;
mov.u64  %rd48, -7046029254386353131; sub.s64  %rd9, %rd48, %rd47;
mul.lo.s64  %rd101, %rd5, -7046029254386353131; mul.lo.s64  %rd11, %rd44, 8709371129873690708;
shl.b64  %rd49, %rd1, 1; add.s64  %rd50, %rd49, %rd3; mul.lo.s64  %rd99, %rd50, %rd2;
mul.lo.s64  %rd51, %rd99, 7046029254386353131; sub.s64  %rd13, %rd48, %rd51;
add.s64  %rd52, %rd3, %rd1; mul.lo.s64  %rd98, %rd52, %rd2;
mul.lo.s64  %rd53, %rd98, 7046029254386353131; sub.s64  %rd15, %rd48, %rd53;
mul.lo.s64  %rd16, %rd44, 12; shl.b64  %rd54, %rd6, 2; add.s64  %rd97, %rd40, %rd54;
shl.b64  %rd18, %rd44, 4; shl.b64  %rd19, %rd44, 3; mul.lo.s64  %rd55, %rd102, 7046029254386353131;
sub.s64  %rd20, %rd48, %rd55; mov.u64  %rd96, 0;
$L__BB7_2:
.pragma "nounroll"; ld.global.u32  %rd56, [%rd97]; add.s64  %rd57, %rd20, %rd101;
shr.u64  %rd58, %rd57, 32; xor.b64   %rd59, %rd58, %rd56; xor.b64   %rd60, %rd59, %rd57;
mul.lo.s64  %rd61, %rd60, -4417276706812531889; shr.u64  %rd62, %rd61, 29;
xor.b64   %rd63, %rd62, %rd61; add.s64  %rd96, %rd63, %rd96; add.s64  %rd64, %rd5, %rd98;
setp.ge.u64  %p2, %rd64, %rd39; @%p2 bra  $L__BB7_6; add.s64  %rd65, %rd97, %rd7;
ld.global.u32  %rd66, [%rd65]; add.s64  %rd67, %rd15, %rd101; shr.u64  %rd68, %rd67, 32;
xor.b64   %rd69, %rd68, %rd66; xor.b64   %rd70, %rd69, %rd67;
mul.lo.s64  %rd71, %rd70, -4417276706812531889; shr.u64  %rd72, %rd71, 29;
xor.b64   %rd73, %rd72, %rd71; add.s64  %rd96, %rd73, %rd96; add.s64  %rd74, %rd5, %rd99;
setp.ge.u64  %p3, %rd74, %rd39; @%p3 bra  $L__BB7_6; add.s64  %rd75, %rd97, %rd19;
ld.global.u32  %rd76, [%rd75]; add.s64  %rd77, %rd13, %rd101; shr.u64  %rd78, %rd77, 32;
xor.b64   %rd79, %rd78, %rd76; xor.b64   %rd80, %rd79, %rd77;
mul.lo.s64  %rd81, %rd80, -4417276706812531889; shr.u64  %rd82, %rd81, 29;
xor.b64   %rd83, %rd82, %rd81; add.s64  %rd96, %rd83, %rd96; add.s64  %rd84, %rd5, %rd100;
setp.ge.u64  %p4, %rd84, %rd39; @%p4 bra  $L__BB7_6; add.s64  %rd85, %rd97, %rd16;
ld.global.u32  %rd86, [%rd85]; add.s64  %rd87, %rd9, %rd101; shr.u64  %rd88, %rd87, 32;
xor.b64   %rd89, %rd88, %rd86; xor.b64   %rd90, %rd89, %rd87;
mul.lo.s64  %rd91, %rd90, -4417276706812531889; shr.u64  %rd92, %rd91, 29;
xor.b64   %rd93, %rd92, %rd91; add.s64  %rd96, %rd93, %rd96; add.s64  %rd102, %rd102, %rd7;
add.s64  %rd94, %rd5, %rd102; add.s64  %rd101, %rd101, %rd11; add.s64  %rd100, %rd100, %rd7;
add.s64  %rd99, %rd99, %rd7; add.s64  %rd98, %rd98, %rd7; add.s64  %rd97, %rd97, %rd18;
setp.lt.u64  %p5, %rd94, %rd39; @%p5 bra  $L__BB7_2;
$L__BB7_6:
atom.global.add.u64  %rd95, [%rd41], %rd96; ret;
}
.visible .entry digest_64(
.param .u64 digest_64_param_0,
.param .u64 digest_64_param_1,
.param .u64 digest_64_param_2
)
{
.reg .pred  %p<6>; .reg .b32  %r<5>; .reg .b64  %rd<105>; ld.param.u64  %rd42, [digest_64_param_2];
ld.param.u64  %rd40, [digest_64_param_0]; mov.u32  %r2, %ntid.x; mov.u32  %r3, %ctaid.x;
mul.wide.u32  %rd103, %r3, %r2; mov.u32  %r4, %tid.x; cvt.u64.u32  %rd5, %r4;
add.s64  %rd6, %rd103, %rd5; setp.ge.u64  %p1, %rd6, %rd40; mov.u64  %rd97, 0; @%p1 bra  $L__BB8_6;
ld.param.u64  %rd41, [digest_64_param_1]; mov.u32  %r1, %nctaid.x; cvt.u64.u32  %rd1, %r1;
cvt.u64.u32  %rd2, %r2; cvt.u64.u32  %rd3, %r3; mul.lo.s64  %rd45, %rd1, %rd2;
shl.b64  %rd7, %rd45, 2; mul.lo.s64  %rd46, %rd1, 3; add.s64  %rd47, %rd46, %rd3;
mul.lo.s64  %rd101, %rd47, %rd2; mul.lo.s64  %rd48, %rd101, 7046029254386353131;
mov.u64  %rd49, -7046029254386353131; sub.s64  %rd9, %rd49, %rd48;
mul.lo.s64  %rd102, %rd5, -7046029254386353131; mul.lo.s64  %rd11, %rd45, 8709371129873690708;
shl.b64  %rd50, %rd1, 1; add.s64  %rd51, %rd50, %rd3; mul.lo.s64  %rd100, %rd51, %rd2;
mul.lo.s64  %rd52, %rd100, 7046029254386353131; sub.s64  %rd13, %rd49, %rd52;
add.s64  %rd53, %rd3, %rd1; mul.lo.s64  %rd99, %rd53, %rd2;
mul.lo.s64  %rd54, %rd99, 7046029254386353131; sub.s64  %rd15, %rd49, %rd54;
mul.lo.s64  %rd16, %rd45, 24; shl.b64  %rd55, %rd6, 3; add.s64  %rd98, %rd41, %rd55;
shl.b64  %rd18, %rd45, 5; shl.b64  %rd19, %rd45, 4; shl.b64  %rd20, %rd45, 3;
mul.lo.s64  %rd56, %rd103, 7046029254386353131; sub.s64  %rd21, %rd49, %rd56; mov.u64  %rd97, 0;
$L__BB8_2:
.pragma "nounroll"; ld.global.u64  %rd57, [%rd98]; add.s64  %rd58, %rd21, %rd102;
xor.b64   %rd59, %rd57, %rd58; shr.u64  %rd60, %rd59, 32; xor.b64   %rd61, %rd60, %rd59;
mul.lo.s64  %rd62, %rd61, -4417276706812531889; shr.u64  %rd63, %rd62, 29;
xor.b64   %rd64, %rd63, %rd62; add.s64  %rd97, %rd64, %rd97; add.s64  %rd65, %rd5, %rd99;
setp.ge.u64  %p2, %rd65, %rd40; @%p2 bra  $L__BB8_6; add.s64  %rd66, %rd98, %rd20;
ld.global.u64  %rd67, [%rd66]; add.s64  %rd68, %rd15, %rd102; xor.b64   %rd69, %rd67, %rd68;
shr.u64  %rd70, %rd69, 32; xor.b64   %rd71, %rd70, %rd69;
mul.lo.s64  %rd72, %rd71, -4417276706812531889; shr.u64  %rd73, %rd72, 29;
xor.b64   %rd74, %rd73, %rd72; add.s64  %rd97, %rd74, %rd97; add.s64  %rd75, %rd5, %rd100;
setp.ge.u64  %p3, %rd75, %rd40; @%p3 bra  $L__BB8_6; add.s64  %rd76, %rd98, %rd19;
ld.global.u64  %rd77, [%rd76]; add.s64  %rd78, %rd13, %rd102; xor.b64   %rd79, %rd77, %rd78;
shr.u64  %rd80, %rd79, 32; xor.b64   %rd81, %rd80, %rd79;
mul.lo.s64  %rd82, %rd81, -4417276706812531889; shr.u64  %rd83, %rd82, 29;
xor.b64   %rd84, %rd83, %rd82; add.s64  %rd97, %rd84, %rd97; add.s64  %rd85, %rd5, %rd101;
setp.ge.u64  %p4, %rd85, %rd40; @%p4 bra  $L__BB8_6; add.s64  %rd86, %rd98, %rd16;
ld.global.u64  %rd87, [%rd86]; add.s64  %rd88, %rd9, %rd102; xor.b64   %rd89, %rd87, %rd88;
shr.u64  %rd90, %rd89, 32; xor.b64   %rd91, %rd90, %rd89;
mul.lo.s64  %rd92, %rd91, -4417276706812531889; shr.u64  %rd93, %rd92, 29;
xor.b64   %rd94, %rd93, %rd92; add.s64  %rd97, %rd94, %rd97; add.s64  %rd103, %rd103, %rd7;
add.s64  %rd95, %rd5, %rd103; add.s64  %rd102, %rd102, %rd11; add.s64  %rd101, %rd101, %rd7;
add.s64  %rd100, %rd100, %rd7; add.s64  %rd99, %rd99, %rd7; add.s64  %rd98, %rd98, %rd18;
setp.lt.u64  %p5, %rd95, %rd40; @%p5 bra  $L__BB8_2;
$L__BB8_6:
atom.global.add.u64  %rd96, [%rd42], %rd97; ret;
}
)ptx";
// clang-format on

}  // namespace muster::collectives::gpu
