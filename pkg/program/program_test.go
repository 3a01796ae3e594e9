package program

import (
	"context"
	"testing"
)

type settings struct{ first, second string }

// TestOverrides checks that environment variables replace fields of the configuration only if they are not empty.
func TestOverrides(t *testing.T) {
	t.Setenv("PROGRAM_TEST_FIRST", "environment")
	t.Setenv("PROGRAM_TEST_SECOND", "")
	var got settings
	command := Program[*settings]{
		Name: "test",
		Load: func(path string) (*settings, error) { return &settings{path, path}, nil },
		Overrides: func(s *settings) map[string]*string {
			return map[string]*string{"PROGRAM_TEST_FIRST": &s.first, "PROGRAM_TEST_SECOND": &s.second}
		},
		Run: func(_ context.Context, s *settings) error { got = *s; return nil },
	}.Command()
	command.SetArgs([]string{"--config", "file"})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := (settings{"environment", "file"}); got != want {
		t.Errorf("the program ran with %+v, want %+v", got, want)
	}
}
