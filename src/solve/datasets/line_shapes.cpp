#include "solve/datasets/line_shapes.hpp"

#include <array>

namespace lockstep::solve {

std::span<const LineShape> line_shapes() {
  static constexpr auto kAll = std::to_array<LineShape>({
      {"constant", "c + 0*x"},
      {"linear", "slope*x + intercept"},
      {"quadratic", "a*x^2 + b*x + c"},
      {"exponential", "amplitude*exp(-x/decay)"},
      {"power_law", "amplitude*x^exponent"},
      {"sine", "amplitude*sin(frequency*x + shift)"},
      {"gaussian", "amplitude/(sigma*sqrt(2*pi))*exp(-(x - center)^2/(2*sigma^2))"},
      {"lorentzian", "amplitude*sigma/(pi*((x - center)^2 + sigma^2))"},
      {"pseudo_voigt",
       "(1 - fraction)*amplitude*sqrt(ln(2)/pi)/sigma*exp(-ln(2)*((x - center)/sigma)^2)"
       " + fraction*amplitude*sigma/(pi*((x - center)^2 + sigma^2))"},
      {"voigt", "amplitude/(sigma*sqrt(2*pi))*faddeeva((x - center)/(sigma*sqrt(2)), gamma/(sigma*sqrt(2)))"},
      {"moffat", "amplitude*(((x - center)/sigma)^2 + 1)^(-beta)"},
      {"lognormal", "amplitude/(sigma*sqrt(2*pi))*exp(-(ln(x) - center)^2/(2*sigma^2))/x"},
      {"logistic_step", "amplitude*(1 - 1/(1 + exp((x - center)/sigma)))"},
  });
  return kAll;
}

}  // namespace lockstep::solve
