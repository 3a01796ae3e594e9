package measure

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Table aligns lines of cells. The first line is the header. For Markdown it adds lines between the columns.
func Table(lines [][]string, markdown bool) string {
	if len(lines) == 0 {
		return ""
	}
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for i, line := range lines {
		text.WriteString(joinCells(line, widths, markdown))
		if i == 0 && markdown {
			text.WriteString("|" + strings.Repeat("---|", len(line)) + "\n")
		}
	}
	return text.String()
}

func joinCells(cells []string, widths []int, markdown bool) string {
	padded := make([]string, len(cells))
	for i, cell := range cells {
		padded[i] = cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
	}
	if markdown {
		return "| " + strings.Join(padded, " | ") + " |\n"
	}
	return strings.TrimRight(strings.Join(padded, "  "), " ") + "\n"
}

// CPUText lists CPU times, in seconds, by program, in descending order.
func CPUText(seconds map[string]float64) string {
	programs := slices.SortedFunc(maps.Keys(seconds), func(a, b string) int { return cmp.Compare(seconds[b], seconds[a]) })
	texts := make([]string, 0, len(programs))
	for _, program := range programs {
		texts = append(texts, fmt.Sprintf("%s %.2fs", program, seconds[program]))
	}
	return strings.Join(texts, ", ")
}

// Mebibytes formats a number of bytes like "1.5 MiB".
func Mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// Thousands formats a number like 1,234.
func Thousands(number int) string {
	digits := strconv.Itoa(number)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Encode writes the results of a program that measures as JSON for people.
func Encode(out io.Writer, results any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(results)
}
