#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"

namespace lloyd::data {
namespace {

class TextFile : public FileTest {};

TEST_F(TextFile, ReadsEachFormatByItsExtensionOrFirstLine) {
  const Values expected = {1, 2.5f, -3, 4e-2f};
  for (const auto& [name, content] :
       std::vector<std::pair<std::string, std::string>>{{"a.csv", "1,2.5\n-3,4e-2\n"},
                                                        {"a.CSV", "1,2.5\n-3,4e-2\n"},
                                                        {"a.tsv", "1\t2.5\n-3\t4e-2\n"},
                                                        {"a.txt", "1 2.5\n-3  4e-2\n"},
                                                        {"b.txt", "1,2.5\n-3,4e-2\n"},
                                                        {"a.inp", "1\t2.5\n-3\t4e-2\n"},
                                                        {"a.dat", "  1   2.5  \n-3 4e-2"},
                                                        {"a", "1,2.5\n-3,4e-2"}}) {
    const Dataset data = read_file(write(name, content));
    EXPECT_EQ(data.n(), 2) << name;
    EXPECT_EQ(data.dim(), 2) << name;
    EXPECT_EQ(values_of(data), expected) << name;
  }
}

TEST_F(TextFile, TheKeyFormatComesBeforeTheExtension) {
  Source source = write("a.csv", "1 2\n3 \t 4\n");
  source.format = "space";
  EXPECT_EQ(values_of(read_file(source)), (Values{1, 2, 3, 4}));
}

TEST_F(TextFile, AcceptsWhatProgramsWrite) {
  const Values expected = {1, 2, 3, 4};
  for (const std::string content :
       {"1,2\r\n3,4\r\n",  // Windows line ends
        "\xEF\xBB\xBF"
        "1,2\n3,4\n",                            // byte order mark
        "\xEF\xBB\xBFx,y\r\n1,2\r\n3,4\r\n\r\n"  // both, with a header and a blank last line
        ,
        "# made by hand\n1,2\n\n  # more\n3,4\n\n \n",  // comments and blank lines
        "1 , 2\n 3,\t4 \n",                             // blanks around numbers
        "\"1\",\"2\"\n\"3\", \"4\" \n",                 // quotes
        "+1,2.\n3e0,+.4e1\n",                           // signs, bare points
        "1,2\n3,4"}) {                                  // no newline at the end
    EXPECT_EQ(values_of(read_file(write("a.csv", content))), expected) << content;
  }
}

TEST_F(TextFile, RoundsToTheNearestFloat) {
  // 1 + 2^-24 is halfway between two floats and is rounded to the even one. A slightly larger
  // number is rounded up.
  EXPECT_EQ(
      values_of(read_file(write(
          "a.csv", "1.000000059604644775390625,1.0000000596046447753906250001,1e-60,1e-45\n"))),
      (Values{1.0f, 1.00000012f, 0.0f, 1e-45f}));
}

TEST_F(TextFile, DetectsAHeaderThatHasNoNumbers) {
  EXPECT_EQ(read_file(write("a.csv", "x,y\n1,2\n")).n(), 1);
  EXPECT_EQ(read_file(write("a.csv", "\"x, first\",\"y \"\"2\"\"\"\n1,2\n")).n(), 1);
  Source source = write("a.csv", "0,1\n1,2\n3,4\n");
  EXPECT_EQ(read_file(source).n(), 3);
  source.header = true;
  EXPECT_EQ(values_of(read_file(source)), (Values{1, 2, 3, 4}));
  source = write("a.csv", "x,y\n1,2\n");
  source.header = false;
  EXPECT_EQ(read_error(source),
            "D/a.csv:1:1: 'x' is not a number (to leave this column out, set index_column: 0)");
}

TEST_F(TextFile, LeavesOutIndexAndLabel) {
  Source source =
      write("iris.csv", "id,a,b,kind\n7,1,2,Iris\n#8,5,6,Comment\n8,3,4,\"Iris, blue\"\n");
  source.index_column = 0;
  source.label_column = -1;
  EXPECT_EQ(values_of(read_file(source)), (Values{1, 2, 3, 4}));
  source.label_column = 3;
  EXPECT_EQ(values_of(read_file(source)), (Values{1, 2, 3, 4}));
  source = write("space.txt", "  a 1 2\n b  3 4 \n");
  source.index_column = 0;
  EXPECT_EQ(values_of(read_file(source)), (Values{1, 2, 3, 4}));
}

TEST_F(TextFile, ManyThreadsReadWhatOneReads) {
  // Several chunks of 1 MiB. Comments and blank lines make row numbers differ from line numbers.
  std::string content = "x,y\n";
  for (int i = 0; i < 200'000; ++i) {
    content += std::to_string(i) + "," + std::to_string(i * 0.25) + "\n";
    if (i % 1000 == 7) content += "# comment\n\n";
  }
  const Source source = write("big.csv", content);
  ASSERT_GT(content.size(), std::size_t{3} << 20);
  const Dataset one = read_file(source, 1);
  ASSERT_EQ(one.n(), 200'000);
  for (int i = 0; i < 200'000; ++i) {
    ASSERT_EQ(one.values()[static_cast<std::size_t>(2 * i)], static_cast<float>(i));
    ASSERT_EQ(one.values()[static_cast<std::size_t>(2 * i + 1)], static_cast<float>(i * 0.25));
  }
  EXPECT_EQ(values_of(one), values_of(read_file(source, 2)));
  EXPECT_EQ(values_of(one), values_of(read_file(source, 3)));
}

TEST_F(TextFile, TheFirstErrorInTheFileIsReportedOnAnyNumberOfThreads) {
  std::string content;
  for (int i = 1; i <= 600'000; ++i) {
    content += i == 300'001 ? "oops,1\n" : i >= 450'000 ? "1\n" : "0.5,1.5\n";
  }
  const Source source = write("big.csv", content);
  ASSERT_GT(content.size(), std::size_t{3} << 20);
  for (const int threads : {1, 2, 3, 8}) {
    EXPECT_EQ(read_error(source, threads), "D/big.csv:300001:1: 'oops' is not a number");
  }
}

TEST_F(TextFile, LoadTakesTheFirstRowsAndColumns) {
  const Source source = write("a.csv", "1,2,3\n4,5,6\n7,8,9\n");
  EXPECT_EQ(values_of(load(source, 2, 2)), (Values{1, 2, 4, 5}));
  EXPECT_EQ(values_of(load(source, 0, 1)), (Values{1, 4, 7}));
  EXPECT_EQ(load(source, 0, 0).values().size(), 9u);
  EXPECT_EQ(error_of([&] { load(source, 4, 2); }), "D/a.csv: has 3 rows, but n = 4 was asked for");
  EXPECT_EQ(error_of([&] { load(source, 1000, 5); }),
            "D/a.csv: has 3 rows, but n = 1,000 was asked for");
  EXPECT_EQ(error_of([&] { load(source, 3, 5); }),
            "D/a.csv: has 3 columns of numbers, but dim = 5 was asked for");
}

TEST_F(TextFile, RefusesWhatIsNotAFileWithContent) {
  Source source;
  source.file = folder_ / "none.csv";
  EXPECT_EQ(read_error(source), "D/none.csv: no such file");
  source.file = folder_;
  EXPECT_EQ(read_error(source), "D: is a directory; a data file is needed");
  source.file = folder_ / "pipe.csv";
  ASSERT_EQ(mkfifo(source.file.c_str(), 0600), 0);
  EXPECT_EQ(read_error(source), "D/pipe.csv: is not a regular file; copy its content into one");
  EXPECT_EQ(read_error(write("a.csv", "")), "D/a.csv: is empty");
  EXPECT_EQ(read_error(write("a.csv", "\n# nothing\n  \n")),
            "D/a.csv: holds no rows, only blank lines and comments");
  EXPECT_EQ(read_error(write("a.csv", "\xEF\xBB\xBF")),
            "D/a.csv: holds no rows, only blank lines and comments");
  EXPECT_EQ(read_error(write("a.csv", "# points\nx,y\n\n")),
            "D/a.csv:2: a header, but no rows after it");
  EXPECT_EQ(read_error(write("a.txt", std::string("\x1f\x8b\x08\0\0", 5))),
            "D/a.txt: is not UTF-8 text; if it is binary, such as npy or fvecs, say so with the "
            "key format");
}

TEST_F(TextFile, RefusesAFileItMayNotRead) {
  const Source source = write("secret.csv", "1,2\n");
  std::filesystem::permissions(source.file, std::filesystem::perms::none);
  const bool root = geteuid() == 0;  // root ignores permissions
  if (root && seteuid(65534) != 0) GTEST_SKIP() << "root here cannot become another user";
  const std::string error = read_error(source);
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_EQ(error, "D/secret.csv: cannot be opened: Permission denied");
}

TEST_F(TextFile, NamesLineAndColumnOfARaggedRow) {
  EXPECT_EQ(read_error(write("a.csv", "1,2,3\n4,5,6\n7,8\n")),
            "D/a.csv:3:4: this row has 2 columns; the first row (line 1) has 3");
  EXPECT_EQ(read_error(write("a.csv", "x,y\n# c\n1,2\r\n3,4,5,6\r\n")),
            "D/a.csv:4:5: this row has 4 columns; the first row (line 3) has 2");
  EXPECT_EQ(read_error(write("a.tsv", "1\t2\n3\n")),
            "D/a.tsv:2:2: this row has 1 column; the first row (line 1) has 2");
  EXPECT_EQ(read_error(write("a.txt", "1 2\n3 4   5\n")),
            "D/a.txt:2:7: this row has 3 columns; the first row (line 1) has 2");
}

TEST_F(TextFile, NamesLineColumnAndTextOfABadNumber) {
  EXPECT_EQ(read_error(write("a.csv", "1,2\n3, 4x\n")), "D/a.csv:2:4: '4x' is not a number");
  EXPECT_EQ(read_error(write("a.csv", "1,2\n3,\"four\"\n")), "D/a.csv:2:4: 'four' is not a number");
  EXPECT_EQ(read_error(write("a.csv", "1,2\n3,0x10\n")), "D/a.csv:2:3: '0x10' is not a number");
  EXPECT_EQ(read_error(write("a.csv", "1,2\n3,+-1\n")), "D/a.csv:2:3: '+-1' is not a number");
  EXPECT_EQ(read_error(write("a.csv", "1;2\n3;4\n1\n")),
            "D/a.csv:1:1: '1;2' is not a number (if ';' separates the columns, set delimiter: "
            "\";\"; if this line is a header, set header: true)");
  EXPECT_EQ(read_error(write("a.csv", "1,2\n3,\xC3\xA9\tz\n")),
            "D/a.csv:2:3: '\\xc3\\xa9\\tz' is not a number (if tabs separate the columns, set "
            "delimiter: tab)");
  EXPECT_EQ(read_error(write("a.csv", "1\n" + std::string(100, 'z') + "\n")),
            "D/a.csv:2:1: '" + std::string(40, 'z') + "…' is not a number");
  EXPECT_EQ(
      read_error(write("a.csv", "1,b\n3,4\n")),
      "D/a.csv:1:3: 'b' is not a number (if this line is a header, set header: true; to leave "
      "this column out, set label_column: -1)");
  EXPECT_EQ(read_error(write("a.csv", "1,2\n3,\n")),
            "D/a.csv:2:3: this field is empty; a number is needed");
  EXPECT_EQ(read_error(write("a.csv", "1,2\n,3\n")),
            "D/a.csv:2:1: this field is empty; a number is needed");
}

TEST_F(TextFile, RefusesAQuoteThatIsNotClosed) {
  const std::string open =
      "this quote is not closed on its line; a field of several lines is not read";
  EXPECT_EQ(read_error(write("a.csv", "\"1,2\n3,4\n")), "D/a.csv:1:1: " + open);
  EXPECT_EQ(read_error(write("a.csv", "1,2\n3,4\n\"5\",\"6\n")), "D/a.csv:3:5: " + open);
  EXPECT_EQ(read_error(write("a.csv", "1,2\n3,\"")), "D/a.csv:2:3: " + open);
  EXPECT_EQ(read_error(write("a.tsv", "1\t\"2\"\"\n")), "D/a.tsv:1:3: " + open);
  Source source = write("a.csv", "1,a\n3,\"b\nc\"\n");
  source.label_column = 1;
  EXPECT_EQ(read_error(source), "D/a.csv:2:3: " + open);
}

TEST_F(TextFile, RefusesTextBehindAClosingQuote) {
  const auto behind = [](const std::string& text) {
    return "'" + text + "' follows a closing quote; quotes must enclose a whole field";
  };
  EXPECT_EQ(read_error(write("a.csv", "1,2\n\"-925730\"7,3\n")), "D/a.csv:2:10: " + behind("7"));
  EXPECT_EQ(read_error(write("a.csv", "1,2\n3, \"1\"e3\n")), "D/a.csv:2:7: " + behind("e3"));
  EXPECT_EQ(read_error(write("a.csv", "1,2\n3,\"1\" \"2\"\n")), "D/a.csv:2:7: " + behind("\"2\""));
  EXPECT_EQ(read_error(write("a.csv", "1,2\n3,\t\"1\"\n")),
            "D/a.csv:2:4: a quote after a tab; remove the tab");
  EXPECT_EQ(read_error(write("a.txt", "1 2\n3 \"4\"\n")),
            "D/a.txt:2:3: quotes have no meaning where blanks separate; remove them, or write csv");
  EXPECT_EQ(values_of(read_file(write("a.csv", "\"-925730\" ,2\n"))), (Values{-925730, 2}));
}

TEST_F(TextFile, ACommentInTsvBeginsTheLineOrIsNone) {
  // The leading tab makes "#x" the second field, so this line is not a comment however it is read.
  Source source = write("a.tsv", "0\tA\t1\n1\tA\t2\n\t#x\t5\n2\tB\t3\n");
  source.index_column = 0;
  source.label_column = 1;
  EXPECT_EQ(values_of(read_file(source)), (Values{1, 2, 5, 3}));
  source = write("a.tsv", "0\tA\t1\n #x\tA\t2\n2\tB\t3\n");
  source.index_column = 0;
  source.label_column = 1;
  EXPECT_EQ(values_of(read_file(source)), (Values{1, 3}));
  EXPECT_EQ(read_error(write("a.tsv", "1\t2\n\t\n")),
            "D/a.tsv:2:1: this field is empty; a number is needed");
  source = write("a.csv", "#1,2\n\t #,\n 1,2\n");
  source.index_column = 0;
  EXPECT_EQ(values_of(read_file(source)), Values{2});
}

TEST_F(TextFile, ABlankAtTheEndOfALineIsNoLabel) {
  for (const std::string content :
       {"1 2 7\n5 6 \n", "1 2 7\n5 6\n", "1 2 7\n5 6 \r\n", "1 2 7\n5 6  "}) {
    Source source = write("a.txt", content);
    source.label_column = -1;
    EXPECT_EQ(read_error(source).substr(0, 8), "D/a.txt:") << content;
    EXPECT_NE(read_error(source).find("this row has 2 columns; the first row (line 1) has 3"),
              std::string::npos)
        << read_error(source);
  }
}

TEST_F(TextFile, RefusesWhatOtherProgramsTakeForTheEndOfALineOrField) {
  const std::string lone = "a carriage return without a newline; lines must end with a newline";
  EXPECT_EQ(read_error(write("a.csv", "1,2\r3,4\r")), "D/a.csv:1:4: " + lone);
  EXPECT_EQ(read_error(write("a.csv", "# c\r1,2\n3,4\n")), "D/a.csv:1:4: " + lone);
  EXPECT_EQ(read_error(write("a.csv", "1,2\n# c\r3,4\n5,6\n")), "D/a.csv:2:4: " + lone);
  EXPECT_EQ(read_error(write("a.csv", "1,2\n3,4\n#\r5,6\n")), "D/a.csv:3:2: " + lone);
  EXPECT_EQ(read_error(write("a.csv", "1,2\r\r\n3,4\n")), "D/a.csv:1:4: " + lone);
  Source source = write("a.csv", "1,a\n2,b\rc\n");
  source.label_column = 1;
  EXPECT_EQ(read_error(source), "D/a.csv:2:4: " + lone);
  source = write("a.csv", "1,a\n2,b\fc\n");
  source.label_column = 1;
  EXPECT_EQ(read_error(source),
            "D/a.csv:2:4: a byte 0x0c, which no text has; is this a text file?");
  source = write("a.txt",
                 "1 a\n2 b\xC2\xA0"
                 "c\n");
  source.label_column = 1;
  EXPECT_EQ(read_error(source),
            "D/a.txt:2:4: a blank that is neither a space nor a tab; replace it by one of these");
  source = write("a.csv", "1,a\r\n2,b\r\n3,\r\n4,d\r");
  source.label_column = 1;
  EXPECT_EQ(values_of(read_file(source)), (Values{1, 2, 3, 4}));
}

TEST_F(TextFile, DropsNoRowAsAHeader) {
  // Missing values, and numbers in a notation that we do not read, do not make the first row a
  // header.
  for (const std::string first : {"1_000,2_000", "0x10,0x11", "1d5,2d5", "NA,NA", "?,?", "None,x",
                                  "-,-", ",", "\xEF\xBC\x91,\xEF\xBC\x92", "1st,2nd"}) {
    EXPECT_NE(read_error(write("a.csv", first + "\n3,4\n")).find("if this line is a header, set"),
              std::string::npos)
        << first;
    Source source = write("a.csv", first + "\n3,4\n");
    source.header = true;
    EXPECT_EQ(values_of(read_file(source)), (Values{3, 4})) << first;
  }
  // np.savetxt writes the header as a comment.
  Source source = write("a.csv", "# x,y\n1,2\n3,4\n");
  source.header = true;
  EXPECT_EQ(read_error(source),
            "D/a.csv:2:1: this line would be left out as the header, but it does not look like one "
            "and is not the file's first; if it is a row, set header: false, else remove what is "
            "before it");
  source.header.reset();
  EXPECT_EQ(read_file(source).n(), 2);
}

TEST_F(TextFile, RefusesAHeaderOfAnotherWidth) {
  EXPECT_EQ(read_error(write("a.csv", "x,y,z\n1,2\n")),
            "D/a.csv:2:1: the header (line 1) has 3 columns, and this row has 2");
  EXPECT_EQ(read_error(write("a.csv", "x,y\n1,2,3\n")),
            "D/a.csv:2:1: the header (line 1) has 2 columns, and this row has 3 (if the first one "
            "holds the names of the rows, set index_column: 0)");
  EXPECT_EQ(
      read_error(write("a.csv", "x;y\n1,5;2\n")),
      "D/a.csv:2:1: the header (line 1) has 1 column, and this row has 2 (if ';' separates the "
      "columns, set delimiter: \";\")");
  // R writes row names like this, without a name for their column. The second file has names that
  // contain blanks.
  Source source = write("a.csv", "x,y\na,1,2\n");
  source.index_column = 0;
  EXPECT_EQ(values_of(read_file(source)), (Values{1, 2}));
  EXPECT_EQ(values_of(read_file(write("a.txt", "the first the second\n1 2\n"))), (Values{1, 2}));
}

TEST_F(TextFile, RefusesNanInfinityAndNumbersBeyondFloat) {
  EXPECT_EQ(read_error(write("a.csv", "1,2\nnan,3\n")),
            "D/a.csv:2:1: 'nan' is not a finite number; remove the row or replace the value");
  EXPECT_EQ(read_error(write("a.txt", "1 2\n3 -Infinity\n")),
            "D/a.txt:2:3: '-Infinity' is not a finite number; remove the row or replace the value");
  EXPECT_EQ(read_error(write("a.tsv", "1\t2\n3\t1e99\n")),
            "D/a.tsv:2:3: '1e99' is beyond the largest float, 3.402823e+38");
}

TEST_F(TextFile, NamesAColumnThatDoesNotExist) {
  Source source = write("a.csv", "1,2,3\n");
  source.index_column = 3;
  EXPECT_EQ(read_error(source),
            "D/a.csv: index_column 3 does not exist; the rows have 3 columns (0 to 2)");
  source.index_column = -1;
  EXPECT_EQ(read_error(source),
            "D/a.csv: index_column -1 does not exist; the rows have 3 columns (0 to 2)");
  source.index_column.reset();
  source.label_column = -4;
  EXPECT_EQ(read_error(source),
            "D/a.csv: label_column -4 does not exist; the rows have 3 columns (-3 to 2)");
  source = write("a.csv", "1\n");
  source.label_column = 0;
  EXPECT_EQ(read_error(source), "D/a.csv: no column is left to read");
}

TEST_F(TextFile, NamesAnUnknownFormat) {
  Source source = write("a.csv", "1\n");
  source.format = "xls";
  EXPECT_EQ(read_error(source),
            "D/a.csv: unknown format 'xls'; the formats are csv, tsv, space, npy, npz, fvecs, "
            "bvecs, ivecs");
}

}  // namespace
}  // namespace lloyd::data
