package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var (
	releasedAction = regexp.MustCompile(`^actions/[a-z-]+@v\d+$`)
	makeTarget     = regexp.MustCompile(`\bmake ([a-z-]+)`)
)

// TestWorkflow checks that the public workflow has only read access to the repository, leaves no credentials
// behind, uses actions of the forge in a released major version, and calls existing targets of the Makefile.
func TestWorkflow(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../.github/workflows/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("found the workflows %v: %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var workflow struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Permissions    map[string]string
				TimeoutMinutes int `json:"timeout-minutes"`
				Steps          []struct {
					Uses, Run string
					With      map[string]any
				}
			}
		}
		if err := yaml.Unmarshal(content, &workflow); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(workflow.Permissions) != 1 || workflow.Permissions["contents"] != "read" {
			t.Errorf("%s: the workflow has the permissions %v", file, workflow.Permissions)
		}
		if strings.Contains(string(content), "secrets.") || strings.Contains(string(content), "pull_request_target") {
			t.Errorf("%s: external contributions could access secrets", file)
		}
		for name, job := range workflow.Jobs {
			if len(job.Permissions) > 0 || job.TimeoutMinutes == 0 {
				t.Errorf("%s: job %s has the permissions %v and the time-out %d", file, name, job.Permissions, job.TimeoutMinutes)
			}
			for _, step := range job.Steps {
				if step.Uses != "" && !releasedAction.MatchString(step.Uses) {
					t.Errorf("%s: job %s uses %s", file, name, step.Uses)
				}
				if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
					t.Errorf("%s: job %s leaves credentials behind", file, name)
				}
				for _, match := range makeTarget.FindAllStringSubmatch(step.Run, -1) {
					if !strings.Contains(string(makefile), "\n"+match[1]+":") {
						t.Errorf("%s: job %s makes %s, which is not a target", file, name, match[1])
					}
				}
			}
		}
	}
}
