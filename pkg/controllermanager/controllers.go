// Package controllermanager has the table of the controllers of a controller-manager. docs/controllers.md explains how to add one.
package controllermanager

import (
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/bastion"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/bindingreference"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/certificatesigningrequest"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/cloudprofilestatus"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/controllerregistration"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/eventexpiry"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/extensionclusterrole"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/gardenletrights"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/managedseedset"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/namespacedcloudprofile"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/project"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/projectactivity"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/projectstale"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/protection"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/seed"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/seedbackupbuckets"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/seedlifecycle"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/shootconditions"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/shoothibernation"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/shootmaintenance"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/shootmigration"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/shootquota"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/shootreference"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/shootretry"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/shootstate"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/shootstatuslabel"
)

// Controllers returns all controllers. The caches, the indexes and the permissions of the process follow from this table.
func Controllers() controller.Set {
	return controller.Set{
		bastion.Controller(),
		bindingreference.Controller(),
		cloudprofilestatus.Controller(),
		certificatesigningrequest.Controller(),
		controllerregistration.Controller(),
		eventexpiry.Controller(),
		extensionclusterrole.Controller(),
		gardenletrights.Controller(),
		managedseedset.Controller(),
		namespacedcloudprofile.Controller(),
		protection.Controller(),
		seed.Controller(),
		seedbackupbuckets.Controller(),
		seedlifecycle.Controller(),
		project.Controller(),
		projectactivity.Controller(),
		projectstale.Controller(),
		shootconditions.Controller(),
		shoothibernation.Controller(),
		shootmaintenance.Controller(),
		shootmigration.Controller(),
		shootquota.Controller(),
		shootreference.Controller(),
		shootretry.Controller(),
		shootstate.Controller(),
		shootstatuslabel.Controller(),
	}
}
