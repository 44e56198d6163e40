// Tails and quantiles of the distributions that statements about fits rest on.
#pragma once

namespace lockstep::solve {

/// P(X > x) of the chi-squared distribution with k degrees of freedom.
double chi_squared_tail(double x, double k);
/// P(F > x) of the F distribution with k1 and k2 degrees of freedom.
double fisher_tail(double x, double k1, double k2);
/// P(T <= t) of Student's distribution; infinite `freedom`: the normal one.
double student_probability(double t, double freedom);
/// The t with student_probability(t, freedom) = p, p in (0, 1).
double student_quantile(double p, double freedom);
/// P(|Z| > |z|) of the normal distribution.
double normal_two_sided(double z);

}  // namespace lockstep::solve
