// bench_eigen_matmul [SIZE [THREADS]]: the time of Eigen's product of two square matrices in row-major order, as
// the medians and minima of runs over at least a second. Without arguments 1024 on 1 and 2 threads.
#include <Eigen/Dense>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

template <class T>
static void measure(const char* type, int size, int threads) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::setNbThreads(threads);
  const Matrix a = Matrix::Random(size, size), b = Matrix::Random(size, size);
  Matrix c(size, size);
  std::vector<double> seconds;
  double all = 0;
  while (all < 1.0 || seconds.size() < 12) {
    const auto begin = std::chrono::steady_clock::now();
    c.noalias() = a * b;
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    all += seconds.back();
  }
  seconds.erase(seconds.begin(), seconds.begin() + 2);  // warm-up
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2], flop = 2.0 * size * size * size;
  std::printf("eigen %d.%d.%d %s %d^3 %d threads: median %.2f ms, minimum %.2f ms, %.1f GFLOP/s (%g)\n",
              EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION, type, size, threads,
              1e3 * median, 1e3 * seconds[0], 1e-9 * flop / median, double(c(size / 2, size / 3)));
}

int main(int argc, char** argv) {
  const int size = argc > 1 ? std::atoi(argv[1]) : 1024, threads = argc > 2 ? std::atoi(argv[2]) : 0;
  if (size < 1 || threads < 0 || argc > 3) {
    std::fprintf(stderr, "usage: %s [SIZE [THREADS]]\n", argv[0]);
    return 2;
  }
  for (int n : threads > 0 ? std::vector{threads} : std::vector{1, 2}) {
    measure<float>("f32", size, n);
    measure<double>("f64", size, n);
  }
}
