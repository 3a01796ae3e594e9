// Package kubeconfig reads untrusted kubeconfigs: it rejects those that run programs or impersonate other users. It also returns
// the cluster of a client configuration for new ones.
package kubeconfig

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// maxSize is the maximum size of a kubeconfig in bytes. Real kubeconfigs have a few KiB.
const maxSize = 1 << 20

// Read returns the configuration of a connection to the cluster of the current context in a kubeconfig file. The error
// names the file and the unusable parts. Of the content, it contains only names.
func Read(path string) (*rest.Config, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	if info.Size() > maxSize {
		return nil, fmt.Errorf("kubeconfig %s has %d bytes, more than the %d allowed", path, info.Size(), maxSize)
	}
	raw, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	config, err := use(raw)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return config, nil
}

// Parse is Read for the content of a file.
func Parse(content []byte) (*rest.Config, error) {
	if len(content) > maxSize {
		return nil, fmt.Errorf("the kubeconfig has %d bytes, more than the %d allowed", len(content), maxSize)
	}
	raw, err := clientcmd.Load(content)
	if err != nil {
		return nil, fmt.Errorf("parse the kubeconfig: %w", err)
	}
	return use(raw)
}

func use(raw *clientcmdapi.Config) (*rest.Config, error) {
	if err := checkUsers(raw); err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*raw, nil).ClientConfig()
}

// CheckInline checks a kubeconfig that a user of the garden supplies for a program in a seed. It must contain everything it
// needs: it runs no programs, reads no files of the Pod, such as the token of its ServiceAccount, does not impersonate, and
// verifies the server. It needs no current context, because API servers choose a user by the name of the server. The error
// contains only names of the content.
func CheckInline(content []byte) error {
	if len(content) > maxSize {
		return fmt.Errorf("the kubeconfig has %d bytes, more than the %d allowed", len(content), maxSize)
	}
	raw, err := clientcmd.Load(content)
	if err != nil {
		return fmt.Errorf("parse the kubeconfig: %w", err)
	}
	errs := []error{checkUsers(raw)}
	for _, name := range slices.Sorted(maps.Keys(raw.AuthInfos)) {
		if raw.AuthInfos[name].TokenFile != "" {
			errs = append(errs, fmt.Errorf("user %q must not use %q: use token", name, "tokenFile"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(raw.Clusters)) {
		errs = append(errs, checkCluster(name, raw.Clusters[name]))
	}
	return errors.Join(errs...)
}

// checkCluster rejects connections to a server that are not verified, or verified with a file.
func checkCluster(name string, cluster *clientcmdapi.Cluster) error {
	var errs []error
	if cluster.CertificateAuthority != "" {
		errs = append(errs, fmt.Errorf("cluster %q must not use %q: use certificate-authority-data", name, "certificate-authority"))
	}
	if cluster.InsecureSkipTLSVerify {
		errs = append(errs, fmt.Errorf("cluster %q must not use %q: use certificate-authority-data", name, "insecure-skip-tls-verify"))
	}
	if server, err := url.Parse(cluster.Server); err != nil || !strings.EqualFold(server.Scheme, "https") {
		errs = append(errs, fmt.Errorf("cluster %q has a server whose address does not begin with https://", name))
	}
	return errors.Join(errs...)
}

// checkUsers rejects authentication methods that run programs, read other files or impersonate another user, as
// gardener-resource-manager does, because kubeconfigs of shoots are untrusted.
func checkUsers(config *clientcmdapi.Config) error {
	var errs []error
	for name, user := range config.AuthInfos {
		for field, set := range map[string]bool{
			"exec":               user.Exec != nil,
			"auth-provider":      user.AuthProvider != nil,
			"client-certificate": user.ClientCertificate != "",
			"client-key":         user.ClientKey != "",
			"as":                 user.Impersonate != "" || user.ImpersonateUID != "",
			"as-groups":          len(user.ImpersonateGroups) > 0,
			"as-user-extra":      len(user.ImpersonateUserExtra) > 0,
		} {
			if set {
				errs = append(errs, fmt.Errorf("user %q must not use %q: use client-certificate-data and client-key-data, "+
					"token, tokenFile or username and password", name, field))
			}
		}
	}
	return errors.Join(errs...)
}
