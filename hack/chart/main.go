// Command chart writes the generated files of the Helm chart, the plain manifests below config/, and the table of values
// in docs/installation.md.
package main

import (
	"fmt"
	"os"

	"github.com/trellis-k8s/trellis/hack/chart/generate"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintf(os.Stderr, "chart: %v\n", err)
		os.Exit(1)
	}
}

func run(root string) error {
	files, err := generate.ChartFiles(root)
	if err != nil {
		return err
	}
	if err := generate.Write(root, files); err != nil {
		return err
	}
	files, err = generate.All(root)
	if err != nil {
		return err
	}
	return generate.Write(root, files)
}
