#include <limits>

#include "data/sources/dataset.h"
#include "experiments/spec/key_tables.h"

namespace lloyd {
namespace {

using Kind = Key::Kind;

std::vector<std::string> generator_names() {
  std::vector<std::string> names;
  for (const data::GeneratorInfo& info : data::generators()) names.push_back(info.name);
  return names;
}

}  // namespace

std::vector<Key> data_keys() {
  return {
      {.section = "data",
       .name = "name",
       .kind = Kind::text,
       .text = "What the axis `data` calls this source. Each of several sources needs a name.",
       .example = "clouds",
       .pattern = "[A-Za-z0-9_.-]{1,64}"},
      {.section = "data",
       .name = "generator",
       .kind = Kind::choice,
       .text = "The distribution of the points. The bits are the same on every machine and for any "
               "number of threads.",
       .example = "blobs",
       .noun = "generator",
       .words = generator_names(),
       .with = "generator"},
      {.section = "data",
       .name = "seed",
       .kind = Kind::seed,
       .text = "The seed of the generator.",
       .example = 7,
       .with = "generator"},
      {.section = "data",
       .name = "range",
       .kind = Kind::range,
       .text = "The lowest and the highest coordinate, the latter exclusive.",
       .example = {-1, 1},
       .with = "generator"},
      {.section = "data",
       .name = "centers",
       .kind = Kind::whole,
       .text = "The number of points that the others lie around.",
       .example = 100,
       .low = 1,
       .with = "generator"},
      {.section = "data",
       .name = "sigma",
       .kind = Kind::real,
       .text = "The standard deviation of the noise around them.",
       .example = 0.5,
       .sign = Sign::not_negative,
       .with = "generator"},
      {.section = "data",
       .name = "file",
       .kind = Kind::text,
       .text =
           "A file with one point per row. A relative path is looked up from the spec's folder, "
           "then from the current directory.",
       .example = "points.csv",
       .with = "file"},
      {.section = "data",
       .name = "format",
       .kind = Kind::choice,
       .text = "The file's format, where its name and its first line do not tell.",
       .example = "space",
       .noun = "format",
       .words = data::formats(),
       .with = "file"},
      {.section = "data",
       .name = "header",
       .kind = Kind::flag,
       .text =
           "Text files: whether the first line holds the names of the columns. Without this key "
           "it does if all its fields are names.",
       .example = true,
       .with = "file"},
      {.section = "data",
       .name = "delimiter",
       .kind = Kind::choice,
       .text = "csv: the character between columns. Without this key it is a comma, or a semicolon "
               "if the comma is the decimal mark.",
       .example = ";",
       .words = {",", ";", "|", ":", "tab"},
       .with = "file"},
      {.section = "data",
       .name = "decimal",
       .kind = Kind::choice,
       .text = "Text files: the decimal mark of all numbers; a point unless given.",
       .example = ",",
       .words = {".", ","},
       .with = "file"},
      {.section = "data",
       .name = "index_column",
       .kind = Kind::column,
       .text = "Text files: a column to leave out, by its name or its number, from 0.",
       .example = "id",
       .with = "file"},
      {.section = "data",
       .name = "label_column",
       .kind = Kind::column,
       .text = "Text files: another column to leave out; a negative number counts from the end.",
       .example = -1,
       .low = std::numeric_limits<int>::min(),
       .with = "file"},
      {.section = "data",
       .name = "columns",
       .kind = Kind::columns,
       .text = "Text files: the columns to read, in this order, by name or number.",
       .example = {"height", "weight"},
       .low = std::numeric_limits<int>::min(),
       .with = "file"},
      {.section = "data",
       .name = "array",
       .kind = Kind::text,
       .text = "npz files: the name of the array. A file with a single array needs no name.",
       .example = "points",
       .with = "file"},
      {.section = "data",
       .name = "mapped",
       .kind = Kind::flag,
       .text = "npy, fvecs and bvecs: whether points stay in the file, for versions that can read "
               "them there. Then the file need not fit into memory.",
       .example = true,
       .with = "file"},
  };
}

}  // namespace lloyd
