package render

import (
	sites "github.com/trellis-k8s/trellis/examples/flow"
	"github.com/trellis-k8s/trellis/pkg/etcd"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/seed"
	"github.com/trellis-k8s/trellis/pkg/shoot"
)

// flows are all flows that can be rendered. Add a new flow here.
func flows() []flow.Renderer {
	return []flow.Renderer{sites.Renderer(), seed.Renderer(), shoot.Renderer(), etcd.Renderer()}
}
