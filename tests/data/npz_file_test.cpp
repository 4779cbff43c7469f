// compare_readers.py compares with NumPy what NumPy writes. Here is what it does not write.
#include <zlib.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "testing.h"

namespace lloyd::data {
namespace {

std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, value >>= 8) text += static_cast<char>(value);
  return text;
}

std::string npy(const std::vector<float>& values) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(values.size()) + ", 1), }";
  header.resize(117, ' ');
  std::string file = "\x93NUMPY";
  file += '\1';
  file += '\0';
  file += little(header.size() + 1, 2) + header + "\n";
  for (const float value : values) file += little(std::bit_cast<std::uint32_t>(value), 4);
  return file;
}

struct Member {
  std::string name;
  std::string content;
  int flags = 0, method = 0;
  std::uint32_t crc = 0;
  std::uint64_t size = 0;
};

Member stored(const std::string& name, const std::vector<float>& values) {
  Member member{name, npy(values)};
  member.size = member.content.size();
  member.crc =
      static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(member.content.data()),
                                       static_cast<uInt>(member.content.size())));
  return member;
}

/// An archive; with `wide`, all sizes and offsets are in fields of 64 bits.
std::string archive(const std::vector<Member>& members, bool wide = false) {
  constexpr std::uint64_t kIn64 = 0xFFFFFFFF;
  std::string file, directory;
  for (const Member& m : members) {
    const std::uint64_t at = file.size(), packed = m.content.size();
    const std::string common = little(static_cast<unsigned>(m.flags), 2) +
                               little(static_cast<unsigned>(m.method), 2) + little(0, 4) +
                               little(m.crc, 4) + little(wide ? kIn64 : packed, 4) +
                               little(wide ? kIn64 : m.size, 4) + little(m.name.size(), 2);
    const std::string extra = wide ? little(9, 2) + little(2, 2) + "??" + little(1, 2) +
                                         little(24, 2) + little(m.size, 8) + little(packed, 8) +
                                         little(at, 8)
                                   : "";
    file += "PK\3\4" + little(20, 2) + common + little(0, 2) + m.name + m.content;
    directory += "PK\1\2" + little(20, 2) + little(20, 2) + common + little(extra.size(), 2) +
                 little(0, 10) + little(wide ? kIn64 : at, 4) + m.name + extra;
  }
  const std::uint64_t at = file.size(), count = members.size();
  file += directory;
  if (wide) {
    const std::uint64_t end = file.size();
    file += "PK\6\6" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) +
            little(count, 8) + little(count, 8) + little(directory.size(), 8) + little(at, 8);
    file += "PK\6\7" + little(0, 4) + little(end, 8) + little(1, 4);
  }
  const std::uint64_t shown = wide ? 0xFFFF : count;
  return file + "PK\5\6" + little(0, 4) + little(shown, 2) + little(shown, 2) +
         little(wide ? kIn64 : directory.size(), 4) + little(wide ? kIn64 : at, 4) + little(0, 2);
}

class NpzFile : public FileTest {
 protected:
  std::string error(const std::string& file, const std::string& array = "") const {
    Source source = write("a.npz", file);
    source.array = array;
    return read_error(source);
  }
};

TEST_F(NpzFile, ReadsTheOnlyOrTheNamedArray) {
  const Member points = stored("points.npy", {1, 2}), labels = stored("labels.npy", {3});
  EXPECT_EQ(values_of(read_file(write("a.npz", archive({points})))), (Values{1, 2}));
  Source source = write("a.npz", archive({points, labels}));
  source.array = "labels";
  EXPECT_EQ(values_of(read_file(source)), (Values{3}));
  EXPECT_EQ(source.describe(), "a.npz(array=labels)");
  const std::string fingerprint_of_labels = fingerprint(source);
  source.array = "points";
  EXPECT_EQ(values_of(read_file(source)), (Values{1, 2}));
  EXPECT_NE(fingerprint(source), fingerprint_of_labels);
  source = write("a.bin", archive({points, stored("notes.txt", {})}));
  source.format = "npz";
  EXPECT_EQ(values_of(read_file(source)), (Values{1, 2}));
}

TEST_F(NpzFile, ReadsSizesOf64Bits) {
  const std::string file = archive({stored("a.npy", {1}), stored("b.npy", {2, 3})}, true);
  Source source = write("a.npz", file);
  source.array = "b";
  EXPECT_EQ(values_of(read_file(source)), (Values{2, 3}));
}

TEST_F(NpzFile, NamesTheArraysToChooseFrom) {
  const Member a = stored("a.npy", {1}), b = stored("b.npy", {2});
  EXPECT_EQ(error(archive({a, b})),
            "D/a.npz: holds 2 arrays; choose one with the key array: 'a', 'b'");
  EXPECT_EQ(error(archive({a, b}), "c"), "D/a.npz: holds no array 'c'; it has 'a', 'b'");
  EXPECT_EQ(error(archive({a, a}), "a"), "D/a.npz: holds several arrays 'a'");
  EXPECT_EQ(error(archive({})), "D/a.npz: holds no arrays");
  EXPECT_EQ(error(archive({stored("a.npy", {NAN})})),
            "D/a.npz['a']: row 1, column 1: nan is not a finite number; remove the row or replace "
            "the value");
}

TEST_F(NpzFile, RefusesWhatIsDamaged) {
  const std::string damaged = "D/a.npz['a']: the zip archive is damaged: ";
  Member m = stored("a.npy", {1});
  m.content.back() = 'x';
  EXPECT_EQ(error(archive({m})), damaged + "the checksum of a member is wrong");
  m = stored("a.npy", {1});
  m.size += 1;
  EXPECT_EQ(error(archive({m})), damaged + "a member's size differs from the one in the directory");
  m.method = 8;
  EXPECT_EQ(error(archive({m})), damaged + "a compressed member cannot be inflated to its size");
  m.size = 1 << 20;
  EXPECT_EQ(error(archive({m})), damaged + "a member is larger than its bytes can say");
  m.method = 14;
  EXPECT_EQ(error(archive({m})),
            "D/a.npz['a']: the compression method 14 is not supported; save the file again with "
            "numpy.savez or numpy.savez_compressed");
  m.flags = 1;
  EXPECT_EQ(error(archive({m})), "D/a.npz['a']: the array is encrypted");
}

TEST_F(NpzFile, RefusesAnArchiveThatIsCutOrGoesOn) {
  const std::string file = archive({stored("a.npy", {1})});
  const std::string damaged = "D/a.npz: the zip archive is damaged: ";
  EXPECT_EQ(error(file + "x"), damaged + "it is truncated, or something follows its end");
  EXPECT_EQ(error("PK"), damaged + "it is truncated");
  EXPECT_EQ(error("1,2\n"), "D/a.npz: is not an npz file (its first bytes are '1,2\\x0a')");
  EXPECT_EQ(error("PK" + file), damaged + "there is no entry of the directory at byte 0");
  for (std::size_t size = 2; size < file.size(); ++size)
    EXPECT_EQ(error(file.substr(0, size)).substr(0, damaged.size()), damaged) << size;
}

TEST_F(NpzFile, AnArrayIsForNpzOnly) {
  Source source = write("a.npy", npy({1}));
  source.array = "a";
  EXPECT_EQ(read_error(source), "D/a.npy: array is for npz files, and this is npy");
  source = write("a.npz", archive({stored("a.npy", {1})}));
  source.header = true;
  EXPECT_EQ(read_error(source), "D/a.npz: header is for text files, and this is npz");
}

}  // namespace
}  // namespace lloyd::data
