package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"

	authenticationv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/authentication/v1alpha1"
)

// adminValidity is how long the kubeconfig of the Shoot is valid, in seconds.
const adminValidity = 24 * 60 * 60

// use fetches a kubeconfig of the Shoot, and uses it.
func (g *guide) use(ctx context.Context) error {
	g.heading("6 of 6: use the cluster")
	g.say(`The garden signs kubeconfigs for the administrators of a Shoot, which are valid for some time only. No DNS server knows the
host of its API server, so the clusters in the kubeconfig get the proxy of the demo as proxy-url: its address is in .run/proxy.
`)
	path := "/apis/core.gardener.cloud/v1beta1/namespaces/" + shoot.Namespace + "/shoots/" + shoot.Name + "/adminkubeconfig"
	request, err := json.Marshal(map[string]any{
		"apiVersion": authenticationv1alpha1.SchemeGroupVersion.String(), "kind": "AdminKubeconfigRequest", "spec": map[string]any{"expirationSeconds": adminValidity},
	})
	if err != nil {
		return fmt.Errorf("rendering a request: %w", err)
	}
	g.say("  $ echo '%s' |\n      kubectl create -f - --raw %s |\n      jq -r .status.kubeconfig | base64 -d > .run/%s.kubeconfig", request, path, shoot.Name)
	output, err := g.kubectl.output(ctx, request, "create", "-f", "-", "--raw", path)
	if err != nil {
		return err
	}
	file, err := g.writeKubeconfig(output)
	if err != nil {
		return err
	}
	own := &guide{kubectl: kubectl{program: g.kubectl.program, kubeconfig: file, cache: g.kubectl.cache}, out: g.out}
	g.say("\n  $ export KUBECONFIG=.run/%s.kubeconfig", shoot.Name)
	for _, command := range []string{"cluster-info", "get namespaces", "auth whoami"} {
		if err := own.kubectlShow(ctx, command); err != nil {
			return err
		}
	}
	g.say("")
	return g.explain(ctx, "shoot.spec.kubernetes")
}

// writeKubeconfig writes the kubeconfig in the answer to a request, with the proxy to the API servers of Shoots. It returns its path.
func (g *guide) writeKubeconfig(answer string) (string, error) {
	var signed authenticationv1alpha1.AdminKubeconfigRequest
	if err := json.Unmarshal([]byte(answer), &signed); err != nil {
		return "", fmt.Errorf("decoding the kubeconfig of the Shoot: %w", err)
	}
	config, err := clientcmd.Load(signed.Status.Kubeconfig)
	if err != nil {
		return "", fmt.Errorf("decoding the kubeconfig of the Shoot: %w", err)
	}
	dir := filepath.Dir(g.kubectl.kubeconfig)
	proxy, err := os.ReadFile(filepath.Join(dir, proxyName))
	if err != nil {
		return "", fmt.Errorf("reading the address of the proxy: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.ProxyURL = string(proxy)
	}
	file := filepath.Join(dir, shoot.Name+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of the Shoot: %w", err)
	}
	return file, nil
}
