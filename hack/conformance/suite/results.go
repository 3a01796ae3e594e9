package suite

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Results are the results of a run, which a later run can continue. They are in a file with one result in JSON on each line; the last
// line of a test counts.
type Results struct {
	path   string
	mutex  sync.Mutex
	byName map[string]Result
}

// OpenResults reads the results in a file, which need not exist. An incomplete last line, of a run that was killed, is ignored.
func OpenResults(path string) (*Results, error) {
	r := &Results{path: path, byName: map[string]Result{}}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the results of the last run: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var result Result
		if err := json.Unmarshal(lines.Bytes(), &result); err == nil && result.Name != "" {
			r.byName[result.Name] = result
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the results of the last run: %w", err)
	}
	return r, nil
}

// Add records results. A test that ran before keeps the number of its attempts.
func (r *Results) Add(results ...Result) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var content []byte
	for _, result := range results {
		result.Attempts = r.byName[result.Name].Attempts
		if result.State != NotRun {
			result.Attempts++
		}
		line, err := json.Marshal(result)
		if err != nil {
			return fmt.Errorf("recording a result: %w", err)
		}
		content = append(append(content, line...), '\n')
		r.byName[result.Name] = result
	}
	if err := os.MkdirAll(filepath.Dir(r.path), 0o750); err != nil {
		return fmt.Errorf("recording results: %w", err)
	}
	f, err := os.OpenFile(r.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("recording results: %w", err)
	}
	// A new line first: the last run might have been killed while it wrote a line.
	_, err = f.Write(append([]byte("\n"), content...))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("recording results: %w", err)
	}
	return nil
}

// Result returns the result of a test. A test without one is not run.
func (r *Results) Result(name string) Result {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if result, found := r.byName[name]; found {
		return result
	}
	return Result{Name: name, State: NotRun}
}

// Remaining returns the tests that still have to run: those without a result and, if failed is set, those that failed.
func (r *Results) Remaining(tests []Test, failed bool) []Test {
	var remaining []Test
	for _, t := range tests {
		if state := r.Result(t.Name).State; state == NotRun || failed && state == Failed {
			remaining = append(remaining, t)
		}
	}
	return remaining
}
