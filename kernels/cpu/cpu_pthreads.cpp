// cpu_pthreads: the naive loop, divided among POSIX threads by hand.
//
// Parent   cpu_sequential.
// Idea     The threads live as long as the solve. Each owns n/t points and k/t centroids; the first
//          threads take one more where there is a remainder. A thread labels its points, adds its
//          sums to the common ones under a lock, waits at a barrier, divides its centroids, reports
//          its largest move under a second lock and waits again.
// Why      No iteration starts a thread, and the threads share both halves of the work. What is
//          left is three barriers and the locks.
// Limits   threads × k × dim sums in memory. With few points per thread the barriers take most of
//          the time: the study loses beyond 32 threads on 10,000 points.
// Study    Up to 31.28× on 32 threads for 100,000 points in 100 dimensions.
#include <pthread.h>

#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <system_error>
#include <vector>

#include "kernels/core/either_precision.h"
#include "kernels/core/lloyd_steps.h"
#include "kernels/core/with_dim.h"

namespace lloyd::cpu {
namespace {

class Barrier {
 public:
  explicit Barrier(int threads) {
    pthread_barrier_init(&barrier_, nullptr, static_cast<unsigned>(threads));
  }
  ~Barrier() { pthread_barrier_destroy(&barrier_); }
  Barrier(const Barrier&) = delete;
  void wait() { pthread_barrier_wait(&barrier_); }

 private:
  pthread_barrier_t barrier_;
};

template <typename T>
class Threads : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    problem_ = problem;
    state_ = std::make_unique<State<T>>(problem);
    threads_ = context.tunables.threads;
    local_.assign(static_cast<std::size_t>(threads_), {});
    for (Local& local : local_) {
      local.sums.resize(state_->sums.size());
      local.counts.resize(state_->counts.size());
    }
  }

  void run(Context& context) override {
    State<T>& s = *state_;
    s.centroids = s.initial;
    std::fill(s.labels.begin(), s.labels.end(), -1);
    std::fill(s.sums.begin(), s.sums.end(), T{0});
    std::fill(s.counts.begin(), s.counts.end(), 0);
    s.iterations = 0;
    changes_ = 0;
    largest_move_ = 0;
    stop_ = false;
    Barrier barrier(threads_);
    // The threads wait until all of them have started: if one fails to start, the others must not
    // wait at a barrier.
    std::atomic<int> start{0};
    struct Argument {
      Threads* self;
      Barrier* barrier;
      std::atomic<int>* start;
      int me;
    };
    std::vector<Argument> arguments;
    for (int me = 1; me < threads_; ++me) arguments.push_back({this, &barrier, &start, me});
    std::vector<pthread_t> started;
    int error = 0;
    for (Argument& argument : arguments) {
      pthread_t thread{};
      error = pthread_create(
          &thread, nullptr,
          [](void* given) -> void* {
            const Argument& a = *static_cast<Argument*>(given);
            a.start->wait(0);
            if (a.start->load() > 0) a.self->with_dimension(nullptr, *a.barrier, a.me);
            return nullptr;
          },
          &argument);
      if (error != 0) break;
      started.push_back(thread);
    }
    start = error == 0 ? 1 : -1;
    start.notify_all();
    if (error == 0) with_dimension(&context, barrier, 0);
    for (const pthread_t thread : started) pthread_join(thread, nullptr);
    if (error != 0)
      throw std::system_error(error, std::generic_category(),
                              "cannot start thread " + std::to_string(started.size() + 2) + " of " +
                                  std::to_string(threads_));
  }

  Solution fetch(Context&) override { return state_->solution(); }

 private:
  struct alignas(128) Local {  // two cache lines: neighbours' prefetchers share no line
    std::vector<T> sums;
    std::vector<std::int64_t> counts;
  };

  void with_dimension(Context* context, Barrier& barrier, int me) {
    with_dim(problem_.dim, [&](auto dim) { work<dim.value>(context, barrier, me); });
  }

  // The work of each thread. The calling thread is number 0 and the only one with a context, so
  // only its ranges are recorded.
  template <int Dim>
  void work(Context* context, Barrier& barrier, int me) {
    State<T>& s = *state_;
    const int dim = problem_.dim, k = problem_.k;
    const Share points(problem_.n, me, threads_), centroids(k, me, threads_);
    Local& local = local_[static_cast<std::size_t>(me)];
    while (!stop_) {
      std::optional<Context::Range> iteration, phase;
      if (context) iteration.emplace(context->iteration(s.iterations));
      if (context) phase.emplace(context->phase("assign"));
      std::fill(local.sums.begin(), local.sums.end(), T{0});
      std::fill(local.counts.begin(), local.counts.end(), 0);
      std::int64_t changes = 0;
      for (std::int64_t i = points.first; i < points.last; ++i) {
        const T* x = s.points.data() + i * dim;
        const std::int32_t label = nearest<Dim>(x, s.centroids.data(), k, dim);
        changes += label != s.labels[i];
        s.labels[i] = label;
        ++local.counts[label];
        for (int t = 0; t < dim; ++t)
          local.sums[static_cast<std::int64_t>(label) * dim + t] += x[t];
      }
      {
        const std::lock_guard lock(sums_lock_);
        for (std::size_t c = 0; c < s.sums.size(); ++c) s.sums[c] += local.sums[c];
        for (std::size_t j = 0; j < s.counts.size(); ++j) s.counts[j] += local.counts[j];
        changes_ += changes;
      }
      barrier.wait();
      if (context) phase.reset();
      if (context) phase.emplace(context->phase("update"));
      double largest = 0;
      for (std::int64_t j = centroids.first; j < centroids.last; ++j)
        largest = std::max(largest, move_centroid(s.centroids, s.sums, s.counts, dim,
                                                  static_cast<std::size_t>(j), problem_.spherical));
      {
        const std::lock_guard lock(move_lock_);
        largest_move_ = std::max(largest_move_, largest);
      }
      barrier.wait();
      if (context) phase.reset();
      if (me == 0) {
        const Stop& stop = problem_.stop;
        stop_ = ++s.iterations == stop.iterations ||
                (stop.tolerance > 0 && std::sqrt(largest_move_) < stop.tolerance) ||
                changes_ < stop.min_changes;
        changes_ = 0;
        largest_move_ = 0;
        std::fill(s.sums.begin(), s.sums.end(), T{0});
        std::fill(s.counts.begin(), s.counts.end(), 0);
      }
      barrier.wait();
    }
  }

  Problem problem_;
  int threads_ = 1;
  std::unique_ptr<State<T>> state_;
  std::vector<Local> local_;
  std::mutex sums_lock_, move_lock_;
  std::int64_t changes_ = 0;
  double largest_move_ = 0;  // squared
  bool stop_ = false;        // written by thread 0 between two barriers
};

using Pthreads = EitherPrecision<Threads<float>, Threads<double>>;

LLOYD_VERSION(
    Pthreads,
    {.name = "cpu_pthreads",
     .family = "cpu",
     .parent = "cpu_sequential",
     .axes = {"threads"},
     .precisions = {Precision::fp32, Precision::fp64},
     .spherical = true,
     .batches = Batches::one_by_one,
     .study = "biason_romania",
     .summary =
         "POSIX threads for the whole solve: points and centroids dealt, locks and barriers"});

}  // namespace
}  // namespace lloyd::cpu
