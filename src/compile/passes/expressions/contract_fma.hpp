// Contraction of products into sums: the only place where it happens.
//
// A product `p = a * b` in the same block as its only use, an fadd or fsub, becomes part of it:
//   p + c → fma(a, b, c)    c + p → fma(a, b, c)    p - c → fma(a, b, -c)    c - p → fma(-a, b, c)
// Where both operands are such products, the first is taken. Nothing is contracted in functions whose author turned it off
// (Function::contract), nor across Op::rounded and Op::uniform. Op::rounded ends here: no later pass knows it.
//
// It runs first, on the function as traced, so that which products contract depends on the author's code
// alone and on no other pass: every target, and every choice of passes, computes the same bits. The
// interpreter runs it too, and the bodies of src/math, expanded later, are never contracted.
#pragma once

#include "lockstep/ir/function.hpp"

namespace lockstep::compile {

void contract_fma(ir::Function& f);

}  // namespace lockstep::compile
