package shoot

import (
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/userfiles"
)

// fieldServer is the path of the settings of the API server.
const fieldServer = "spec.kubernetes.kubeAPIServer."

// unknownUserFiles names the objects that do not exist.
func (in Inputs) unknownUserFiles() string {
	missing := in.UserFiles.Missing(userfiles.Of(in.server(), fieldServer))
	if missing == "" {
		return ""
	}
	return "these objects do not exist in the namespace of the Shoot: " + missing
}

// userFiles returns the files for the API server from users' objects.
func (in Inputs) userFiles() (kubeapiserver.Given, error) {
	return in.UserFiles.Given(in.server(), fieldServer)
}
