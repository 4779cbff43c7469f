// Where a problem's points come from: a counter-based generator or a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/sources/seeding.h"
#include "kernels/core/point_rows.h"

namespace lloyd::data {

/// A data file that cannot be used. what() is `path:line:column: reason`, with line and column
/// where they are known.
struct DataError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A column of a text file: its number, from 0, or its name in the header.
using Column = std::variant<int, std::string>;

/// Either `generator` or `file` is set. The defaults of `low`, `high`, `centers` and `sigma` depend
/// on the generator; generators() lists them.
struct Source {
  std::string generator;  // a name from generators(); empty when a file is read
  std::uint64_t seed = 42;
  std::optional<double> low, high;  // spec key `range: [low, high]`
  std::optional<int> centers;       // spec key `centers`
  std::optional<double> sigma;      // spec key `sigma`

  std::filesystem::path file;  // absolute or relative to the current directory; empty: generated
  std::string format;          // a name from formats(); empty: detected by extension and content

  // The rest is for text formats, except `array`.
  std::optional<bool> header;  // is the first line a header? If unset, a first line of names is one
  char delimiter = '\0';       // what separates the columns of csv; '\0': a comma, or a semicolon
                               // where the comma is the decimal mark
  char decimal = '.';          // or ','
  std::optional<Column> index_column;  // a column to leave out
  std::optional<Column> label_column;  // the same; a negative number counts from the end
  std::vector<Column> columns;         // those to read, in this order; empty: all that are left
  std::string array;                   // npz: the name of the array; empty: the only one

  bool mapped = false;  // npy, fvecs, bvecs: points stay in the file where that is possible

  bool unit_length = false;  // each row is scaled to length 1 (spec key `distance: cosine`)

  /// One line that names the data: "uniform(range=[0,1), seed=42)", or the file's name and what is
  /// read of it.
  std::string describe() const;
};

struct GeneratorInfo {
  std::string name;
  std::string summary;
  std::vector<std::string> keys = {};  // of {range, centers, sigma}; all generators have seed
  // The defaults of these keys.
  double low = 0, high = 1;
  int centers = 16;
  double sigma = 1;

  /// The summary with the defaults of the keys.
  std::string describe() const;
};
const std::vector<GeneratorInfo>& generators();
const std::vector<std::string>& formats();

/// The size of a file: its rows, and its columns of numbers that are read. 0: no file.
struct Extent {
  std::int64_t n = 0;
  int dim = 0;
};

/// A source as a spec lists it.
struct NamedSource {
  std::string name = {};  // empty if it is the only one and has none
  Source source;
  std::string file = {};  // as the spec writes it; the path in `source` is absolute
  Extent extent = {};     // of the whole file, of which problems take the first rows and columns
};
using Sources = std::vector<NamedSource>;

/// n × dim floats, row-major.
class Dataset {
 public:
  /// Leaves the values uninitialised. Throws DataError with the sizes when there is not enough
  /// memory.
  Dataset(std::int64_t n, int dim);
  std::int64_t n() const { return n_; }
  int dim() const { return dim_; }
  std::span<float> values() { return {values_.get(), static_cast<std::size_t>(n_) * dim_}; }
  std::span<const float> values() const {
    return {values_.get(), static_cast<std::size_t>(n_) * dim_};
  }

 private:
  std::int64_t n_;
  int dim_;
  std::unique_ptr<float[]> values_;
};

/// Throws DataError when n × dim × value_bytes bytes overflow or exceed this machine's free memory.
/// The message names both sizes.
void check_fits_memory(std::int64_t n, int dim, int value_bytes = 4);

/// Reads the whole file and checks that it is rectangular, numeric and finite. `threads` threads
/// parse in parallel (0: available_cores()).
Dataset read_file(const Source& source, int threads = 0);

/// The size of a file that read_file() reads. If it is `mapped`, only its head is read.
Extent extent_of(const Source& source);

struct Generator;  // kernels/core/random_values.h

/// Fills `out` (row-major, dim columns) with a generator's rows from number `first` on. `threads`:
/// of the host (0: available_cores()).
using DrawRows = void(const Generator& generator, std::int64_t first, std::span<float> out, int dim,
                      int threads);
DrawRows draw_on_cpu;
/// On the current CUDA device. Throws cuda::OutOfMemory if 64 MiB are not free there. Absent in a
/// build without CUDA.
DrawRows draw_on_gpu;

/// n × dim points of a generator. Value (i, j) depends only on the options, the seed, i and j. So
/// the bits are the same on every machine, thread count and device, and a smaller n or dim gives a
/// prefix of a larger one.
Dataset generate(const Source& source, std::int64_t n, int dim, int threads = 0,
                 DrawRows& draw = draw_on_cpu);

/// Rows of the same points from number `first` on.
void generate_rows(const Source& source, std::int64_t first, std::span<float> out, int dim,
                   int threads = 0, DrawRows& draw = draw_on_cpu);

/// The first n rows and dim columns (0: all) of generate() or read_file(). Throws DataError when
/// the file has fewer.
Dataset load(const Source& source, std::int64_t n, int dim, int threads = 0,
             DrawRows& draw = draw_on_cpu);

/// A 128-bit hash of the source in hex: of the file's bytes and reading options, or of the
/// generator's options.
std::string fingerprint(const Source& source);

struct Init {
  std::string method = "random_points";  // a name from init_methods(), or "file"
  std::uint64_t seed = 1;
  Source file;  // for "file": K rows
};
const std::vector<std::string>& init_methods();  // random_points, kmeans++, kmeans||, file

/// k × dim initial centroids for the n × dim points (row-major). The bits are the same on any
/// thread count and for any `make`, which measures the distances (seeding.h). random_points: k
/// distinct rows drawn uniformly. seeding.h defines kmeans++ and kmeans||. Throws DataError when
/// k > n or the file has another shape.
std::vector<float> initial_centroids(const Init& init, std::span<const float> points,
                                     std::int64_t n, int dim, int k, int threads = 0,
                                     MakeNearest& make = make_cpu_nearest);

/// The same for points that need not be in memory, by a method that measures no distances.
std::vector<float> initial_centroids(const Init& init, const PointRows& points, std::int64_t n,
                                     int dim, int k);

/// Whether a method measures distances: kmeans++ and kmeans||.
bool measures_distances(const std::string& method);

/// How many CPU threads initial_centroids() may use for a method when `threads` is 0.
int init_threads(const std::string& method);

}  // namespace lloyd::data
