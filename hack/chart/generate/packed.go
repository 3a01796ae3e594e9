package generate

import (
	"encoding/base64"
	"fmt"
	"os"

	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// Packed returns the archive of the chart in a directory, encoded as in a ControllerDeployment.
func Packed(directory string) (string, error) {
	chart, err := LoadFrom(directory)
	if err != nil {
		return "", err
	}
	target, err := os.MkdirTemp("", "chart-")
	if err != nil {
		return "", fmt.Errorf("pack the chart %s: %w", directory, err)
	}
	defer func() { _ = os.RemoveAll(target) }()
	path, err := chartutil.Save(chart, target)
	if err != nil {
		return "", fmt.Errorf("pack the chart %s: %w", directory, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("pack the chart %s: %w", directory, err)
	}
	return base64.StdEncoding.EncodeToString(content), nil
}
