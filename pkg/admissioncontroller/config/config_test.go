package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/trellis-k8s/trellis/pkg/apis/admissioncontroller/v1alpha1"
)

const header = "apiVersion: admissioncontroller.config.gardener.cloud/v1alpha1\nkind: AdmissionControllerConfiguration\n"

func TestExample(t *testing.T) {
	c, err := Load(filepath.Join("..", "..", "..", "examples", "config", "admission-controller.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(c.Server.ResourceAdmissionConfiguration.Limits); got != 2 {
		t.Errorf("got %d limits", got)
	}
}

func TestDefaults(t *testing.T) {
	c, err := Parse([]byte(header + `server: {resourceAdmissionConfiguration: {limits: [], unrestrictedSubjects: [{kind: Group, name: a}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	limits := c.Server.ResourceAdmissionConfiguration
	if *limits.OperationMode != v1alpha1.ModeBlock || limits.UnrestrictedSubjects[0].APIGroup != "rbac.authorization.k8s.io" {
		t.Errorf("got %+v", limits)
	}
	if c.Server.Webhooks.Port != 2721 || c.Server.Webhooks.TLS.SelfManaged == nil || c.Server.Metrics.Port != 2723 {
		t.Errorf("got %+v", c.Server)
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"logLevel: loud\n": "logLevel",
		"servers: {}\n":    `unknown field "servers"`,
		"server: {webhooks: {tls: {serverCertDir: /a, selfManaged: {}}}}\n":                                                                                                    "server.webhooks.tls.selfManaged",
		"server: {resourceAdmissionConfiguration: {limits: [{apiGroups: [a], apiVersions: [v1], size: 1}]}}\n":                                                                 "limits[0].resources",
		"server: {resourceAdmissionConfiguration: {limits: [{apiGroups: [a], apiVersions: [v1], resources: [b]}]}}\n":                                                          "limits[0].size",
		"server: {resourceAdmissionConfiguration: {limits: [{apiGroups: [a], apiVersions: [v1], resources: [b], size: -1}]}}\n":                                                "limits[0].size",
		"server: {resourceAdmissionConfiguration: {limits: [{apiGroups: [a], apiVersions: [v1], resources: [b], count: -1}]}}\n":                                               "limits[0].count",
		"server: {resourceAdmissionConfiguration: {limits: [], operationMode: warn}}\n":                                                                                        "operationMode",
		"server: {resourceAdmissionConfiguration: {limits: [], unrestrictedSubjects: [{kind: Robot, name: a}]}}\n":                                                             "unrestrictedSubjects[0].kind",
		"server: {resourceAdmissionConfiguration: {limits: [], unrestrictedSubjects: [{kind: ServiceAccount, name: a}]}}\n":                                                    "unrestrictedSubjects[0].namespace",
		"server: {resourceAdmissionConfiguration: {limits: [], unrestrictedSubjects: [{kind: User}]}}\n":                                                                       "unrestrictedSubjects[0].name",
		"server: {resourceAdmissionConfiguration: {limits: [], unrestrictedSubjects: [{kind: User, name: a, apiGroup: b}]}}\n":                                                 "unrestrictedSubjects[0].apiGroup",
		"server: {resourceAdmissionConfiguration: {limits: [], unrestrictedSubjects: [{kind: ServiceAccount, name: a, namespace: b, apiGroup: rbac.authorization.k8s.io}]}}\n": "unrestrictedSubjects[0].apiGroup",
	} {
		if _, err := Parse([]byte(header + text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", text, err, want)
		}
	}
}
