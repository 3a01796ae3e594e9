package conformance

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// References returns the references of all images that e2e.test uses, with the registries in a file that [Repositories] returns.
func References(ctx context.Context, program, repositories string) ([]string, error) {
	output, err := exec.CommandContext(ctx, program, "--list-images", "--kube-test-repo-list="+repositories).Output() //nolint:gosec // the program of the build
	if err != nil {
		return nil, fmt.Errorf("listing the images of the conformance tests: %w", err)
	}
	references := strings.Fields(string(output))
	slices.Sort(references)
	return slices.Compact(references), nil
}
