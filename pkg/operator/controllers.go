// Package operator has the table of the controllers of the operator. docs/operator.md explains when they run.
package operator

import (
	"github.com/trellis-k8s/trellis/pkg/garden"
	"github.com/trellis-k8s/trellis/pkg/operator/controller"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/evictionrequirements"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/extension"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/extensioncare"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/extensionrequired"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/gardencare"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/gardenlet"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/networkpolicy"
	"github.com/trellis-k8s/trellis/pkg/operator/controller/reference"
	"github.com/trellis-k8s/trellis/pkg/operator/registrar"
)

// Controllers returns all controllers. The caches and the permissions of the process follow from this table.
func Controllers() controller.Set {
	return controller.Set{
		garden.Controller(),
		registrar.Rights(),
		reference.Controller(),
		gardencare.Controller(),
		networkpolicy.Controller(),
		evictionrequirements.Controller(),
		extension.Controller(),
		extensionrequired.Runtime(),
		extensionrequired.Virtual(),
		extensioncare.Controller(),
		gardenlet.Controller(),
	}
}
