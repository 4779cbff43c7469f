// Delimiters, decimal commas and columns by name, and the remedies that errors name.
#include "testing.h"

namespace lloyd::data {
namespace {

class TextOptions : public FileTest {
 protected:
  /// A csv file with the given options.
  Source with(std::string_view content, char delimiter, char decimal = '.') const {
    Source source = write("a.csv", content);
    source.delimiter = delimiter;
    source.decimal = decimal;
    return source;
  }
  Source choosing(std::string_view content, std::vector<Column> columns) const {
    Source source = write("a.csv", content);
    source.columns = std::move(columns);
    return source;
  }
};

TEST_F(TextOptions, ReadsOtherDelimitersAndDecimalCommas) {
  const Values expected = {1.5f, 2, -3, 0.25f};
  EXPECT_EQ(values_of(read_file(with("1.5;2\n-3;.25\n", ';'))), expected);
  EXPECT_EQ(values_of(read_file(with("1.5|2\n-3|\".25\"\n", '|'))), expected);
  EXPECT_EQ(values_of(read_file(with("1.5:2\n-3:.25\n", ':'))), expected);
  EXPECT_EQ(values_of(read_file(with("1.5\t2\n-3\t .25 \n", '\t'))), expected);
  EXPECT_EQ(values_of(read_file(with("x;y\n1,5;2\n-3;,25\n", ';', ','))), expected);
  EXPECT_EQ(values_of(read_file(with("1,5;2,0\n-3,;\"25e-2\"\n", '\0', ','))), expected);
  Source source = write("a.tsv", "1,5\t2\n-3\t,25\n");
  source.decimal = ',';
  EXPECT_EQ(values_of(read_file(source)), expected);
  source = write("a.txt", "1,5 2\n-3 ,25\n");
  source.decimal = ',';
  EXPECT_EQ(values_of(read_file(source)), expected);
  source = write("a.txt", "1,5;2\n-3;,25\n");
  source.decimal = ',';
  EXPECT_EQ(values_of(read_file(source)), expected);
}

TEST_F(TextOptions, WithADecimalCommaAPointIsNoNumber) {
  const std::string remedy =
      " (if the point is the decimal mark, leave out decimal: \",\"; if it groups digits, remove "
      "it)";
  EXPECT_EQ(read_error(with("1,5;2\n3;1.5\n", ';', ',')),
            "D/a.csv:2:3: '1.5' is not a number" + remedy);
  EXPECT_EQ(read_error(with("1.000,5;2\n", ';', ',')),
            "D/a.csv:1:1: '1.000,5' is not a number (if this line is a header, set header: true; "
            "to leave this column out, set index_column: 0)");
  EXPECT_EQ(read_error(with("2\n1,5,5\n", ';', ',')), "D/a.csv:2:1: '1,5,5' is not a number");
}

TEST_F(TextOptions, RefusesOptionsThatContradictEachOther) {
  EXPECT_EQ(read_error(with("1,5\n", ',', ',')),
            "D/a.csv: the comma cannot be both delimiter and decimal mark; which one is it?");
  Source source = with("1;2\n", ';');
  source.format = "tsv";
  EXPECT_EQ(read_error(source), "D/a.csv: delimiter is for format: csv, and this is tsv");
  source = with("1;2\n", ';');
  source.array = "points";
  EXPECT_EQ(read_error(source), "D/a.csv: array is for npz files, and this is csv");
  source = write("a.npy", "");
  source.delimiter = ';';
  EXPECT_EQ(read_error(source), "D/a.npy: is empty");
  source = write("a.npy", "x");
  source.columns = {0};
  EXPECT_EQ(read_error(source), "D/a.npy: columns is for text files, and this is npy");
}

TEST_F(TextOptions, NamesTheDelimiterAndTheDecimalMarkThatTheNumbersSuggest) {
  EXPECT_EQ(read_error(write("a.csv", "1|2\n")),
            "D/a.csv:1:1: '1|2' is not a number (if '|' separates the columns, set delimiter: "
            "\"|\"; if this line is a header, set header: true)");
  EXPECT_EQ(read_error(write("a.csv", "1,5;2,5\n")),
            "D/a.csv:1:3: '5;2' is not a number (if ';' separates the columns, set delimiter: "
            "\";\"; if this line is a header, set header: true)");
  EXPECT_EQ(read_error(write("a.tsv", "1\t2\n1,5\t2\n")),
            "D/a.tsv:2:1: '1,5' is not a number (if the comma is the decimal mark, set decimal: "
            "\",\"; if it groups digits, remove it)");
  EXPECT_EQ(read_error(write("a.csv", "1,2\n\"1,000\",2\n")),
            "D/a.csv:2:2: '1,000' is not a number (write numbers with a decimal point and without "
            "thousands separators)");
}

TEST_F(TextOptions, ReadsTheChosenColumnsInTheirOrder) {
  const std::string text = "id,x,y,kind\na,1,2,b\nc,3,4,d\n";
  EXPECT_EQ(values_of(read_file(choosing(text, {"y", "x"}))), (Values{2, 1, 4, 3}));
  EXPECT_EQ(values_of(read_file(choosing(text, {2}))), (Values{2, 4}));
  EXPECT_EQ(values_of(read_file(choosing(text, {-2, "x"}))), (Values{2, 1, 4, 3}));
  EXPECT_EQ(values_of(load(choosing(text, {"y", "x"}), 1, 1)), (Values{2}));
  EXPECT_EQ(values_of(read_file(choosing("1,2,3\n", {2, 0}))), (Values{3, 1}));
  Source source = write("a.csv", text);
  source.index_column = "id";
  source.label_column = "kind";
  EXPECT_EQ(values_of(read_file(source)), (Values{1, 2, 3, 4}));
  EXPECT_EQ(choosing(text, {"y", -1}).describe(), "a.csv(columns=['y', -1])");
}

TEST_F(TextOptions, AnyFieldMayBeAName) {
  EXPECT_EQ(values_of(read_file(choosing("\"a, b\", \"c \"\"d\"\"\" ,e\n1,2,3\n", {"c \"d\""}))),
            Values{2});
  Source source = choosing("1,x,2\n7,8,9\n", {"2"});
  source.header = true;
  EXPECT_EQ(values_of(read_file(source)), Values{9});
  // R writes the names of rows without a name of their column.
  source = choosing("x,y\na,1,2\n", {"y"});
  source.index_column = 0;
  EXPECT_EQ(values_of(read_file(source)), Values{2});
}

TEST_F(TextOptions, RefusesColumnsThatAreNotClear) {
  const std::string text = "id,x,y,x\n1,2,3,4\n";
  const auto error = [&](const std::string& content, std::vector<Column> columns) {
    return read_error(choosing(content, std::move(columns)));
  };
  EXPECT_EQ(error(text, {"z"}),
            "D/a.csv:1:1: columns: no column is called 'z'; the columns are 'id', 'x', 'y', 'x'");
  EXPECT_EQ(error(text, {"x"}),
            "D/a.csv:1:1: columns: columns 1 and 3 are both called 'x'; write the number");
  EXPECT_EQ(error(text, {"y", 2}), "D/a.csv:1:1: columns lists column 2 ('y') twice");
  EXPECT_EQ(error(text, {4}),
            "D/a.csv: columns 4 does not exist; the rows have 4 columns (-4 to 3)");
  EXPECT_EQ(error("1,2\n", {0, 0}), "D/a.csv: columns lists column 0 twice");
  EXPECT_EQ(error("1,2\n", {"x"}),
            "D/a.csv:1:1: a column is given by name, but this line does not look like names; if "
            "it is the header, set header: true");
  Source source = choosing(text, {"y"});
  source.label_column = 2;
  EXPECT_EQ(read_error(source),
            "D/a.csv:1:1: column 2 ('y') is listed in columns and left out by label_column");
  source = choosing(text, {"y"});
  source.header = false;
  EXPECT_EQ(read_error(source),
            "D/a.csv: a column is given by name, and header: false says that there are no names");
  source = choosing("1,5,2\n7,8,9\n", {1});
  source.header = true;
  EXPECT_EQ(read_error(source),
            "D/a.csv:1:1: columns: 1 may be the number or the name of a column; write the name in "
            "quotes: \"1\" for column 0, or \"5\" for column 1");
}

TEST_F(TextOptions, NamesTheKeyThatLeavesAnIdOut) {
  EXPECT_EQ(read_error(write("a.csv", "name,x,kind\nfoo,1,a\n")),
            "D/a.csv:2:1: 'foo' is not a number (to leave this column out, set index_column: "
            "name)");
  EXPECT_EQ(read_error(write("a.csv", "x,kind\n1,a\n")),
            "D/a.csv:2:3: 'a' is not a number (to leave this column out, set label_column: kind)");
  EXPECT_EQ(read_error(write("a.txt", "1 2 a\n3 4 b\n")),
            "D/a.txt:1:5: 'a' is not a number (if this line is a header, set header: true; to "
            "leave this column out, set label_column: -1)");
  // In a later row it is one bad number, in the only column there is nothing to leave out, and a
  // missing value is no id.
  EXPECT_EQ(read_error(write("a.csv", "x,y\n1,2\nfoo,3\n")), "D/a.csv:3:1: 'foo' is not a number");
  EXPECT_EQ(read_error(write("a.csv", "x\nfoo\n")), "D/a.csv:2:1: 'foo' is not a number");
  EXPECT_EQ(read_error(write("a.csv", "x,y\nNA,3\n")), "D/a.csv:2:1: 'NA' is not a number");
}

TEST_F(TextOptions, RefusesNumbersWhoseColumnIsCalledAnId) {
  const auto refused = [](const std::string& name, const std::string& key) {
    return name + " is not a coordinate, by its name; to leave the column out, set " + key +
           "; to read it, list all columns to read in the key columns";
  };
  EXPECT_EQ(read_error(write("a.csv", ",x,y\n0,1,2\n")),
            "D/a.csv:1:1: " + refused("a column without a name", "index_column: 0"));
  EXPECT_EQ(read_error(write("a.csv", "x,ID\n0,1\n")),
            "D/a.csv:1:3: " + refused("'ID'", "index_column: ID"));
  EXPECT_EQ(read_error(write("a.csv", "Unnamed: 0,x\n0,1\n")),
            "D/a.csv:1:1: " + refused("'Unnamed: 0'", "index_column: 0"));
  EXPECT_EQ(read_error(write("a.csv", "x,class\n0,1\n")),
            "D/a.csv:1:3: " + refused("'class'", "label_column: class"));
  Source source = write("a.csv", "id,x,class\n0,1,2\n");
  source.index_column = 0;
  source.label_column = -1;
  EXPECT_EQ(values_of(read_file(source)), Values{1});
  source = choosing("id,x\n7,8\n", {0, 1});
  EXPECT_EQ(values_of(read_file(source)), (Values{7, 8}));
}

TEST_F(TextOptions, OptionsAreInTheFingerprint) {
  const std::string text = "x,y\n1,2\n";
  const Source plain = write("a.csv", text);
  const std::string before = fingerprint(plain);
  Source other = plain;
  other.delimiter = ';';
  EXPECT_NE(fingerprint(other), before);
  other = plain;
  other.decimal = ',';
  EXPECT_NE(fingerprint(other), before);
  other = plain;
  other.columns = {"y"};
  EXPECT_NE(fingerprint(other), before);
  const std::string by_name = fingerprint(other);
  other.columns = {1};
  EXPECT_NE(fingerprint(other), by_name);
  other = plain;
  other.label_column = "y";
  EXPECT_NE(fingerprint(other), before);
}

}  // namespace
}  // namespace lloyd::data
