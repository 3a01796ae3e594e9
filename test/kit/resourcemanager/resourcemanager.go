// Package resourcemanager makes a test package that runs the resource-manager depend on it. Import it for its effect on kit.Binary.
package resourcemanager

import (
	"sync"

	"github.com/trellis-k8s/trellis/cmd/resource-manager/app"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

func init() { kit.Binary = sync.OnceValues(controlplane.BuildProgram[app.Program]) }
