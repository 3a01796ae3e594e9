package etcd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/yaml"

	etcdmember "github.com/trellis-k8s/trellis/cmd/etcd-member/app"
	"github.com/trellis-k8s/trellis/pkg/etcd/config"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
)

// memberBinary builds the program of members once.
var memberBinary = sync.OnceValues(controlplane.BuildProgram[etcdmember.Program])

// site runs members as processes instead of Pods.
type site struct {
	*world
	certificates, kubeconfig string
	clientTLS                *tls.Config
	members                  []*process
}

// process is a member. Its directory is its volume.
type process struct {
	site                           *site
	name, directory                string
	clientURL, peerURL             string
	clientPort, peerPort, readyURL string
	statusPort                     int
	command                        *exec.Cmd
	log                            *kit.Output
	backup                         *config.Backup
}

func newSite(w *world, members int) *site {
	w.Helper()
	s := &site{world: w, certificates: w.TempDir(), kubeconfig: filepath.Join(w.TempDir(), "kubeconfig")}
	kit.Must(w, os.WriteFile(s.kubeconfig, w.cp.Kubeconfig(), 0o600))
	s.issue()
	for i := range members {
		p := &process{site: s, name: fmt.Sprintf("%s-%d", name, i), directory: filepath.Join(w.TempDir(), "data"), statusPort: kit.FreePort(w), log: &kit.Output{}}
		p.clientPort, p.peerPort = fmt.Sprint(kit.FreePort(w)), fmt.Sprint(kit.FreePort(w))
		p.clientURL, p.peerURL = "https://127.0.0.1:"+p.clientPort, "http://127.0.0.1:"+p.peerPort
		p.readyURL = fmt.Sprintf("https://127.0.0.1:%d/readyz", p.statusPort)
		s.members = append(s.members, p)
	}
	w.Cleanup(func() {
		for _, p := range s.members {
			p.kill()
			if w.Failed() {
				w.Logf("log of %s:\n%s", p.name, lastLines(p.log.String(), 200))
			}
		}
	})
	return s
}

func lastLines(text string, count int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

// issue creates an authority, and one certificate that servers, clients and peers use.
func (s *site) issue() {
	s.Helper()
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(s, err)
	authority, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "etcd"}, authorityKey)
	kit.Must(s, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(s, err)
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "etcd"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{name + "-local"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, authority, key.Public(), authorityKey)
	kit.Must(s, err)
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	kit.Must(s, err)
	bundle := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: authority.Raw})
	leaf := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: raw})
	for file, content := range map[string][]byte{"ca.crt": bundle, "tls.crt": leaf, "tls.key": encoded} {
		kit.Must(s, os.WriteFile(filepath.Join(s.certificates, file), content, 0o600))
	}
	pair, err := tls.X509KeyPair(leaf, encoded)
	kit.Must(s, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	s.clientTLS = &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func (s *site) file(name string) string { return filepath.Join(s.certificates, name) }

// configure writes the files that a member would get from its ConfigMap.
func (p *process) configure(kubeconfig string) string {
	p.site.Helper()
	directory := p.site.TempDir()
	security := map[string]any{
		"cert-file": p.site.file("tls.crt"), "key-file": p.site.file("tls.key"), "trusted-ca-file": p.site.file("ca.crt"), "client-cert-auth": true,
	}
	settings := map[string]any{"client-transport-security": security, "log-level": "warn", "snapshot-count": 1000}
	if strings.HasPrefix(p.peerURL, "https:") {
		settings["peer-transport-security"] = security
	}
	root, err := controlplane.RepositoryRoot()
	kit.Must(p.site, err)
	own := config.Member{
		Namespace: p.site.namespace, Etcd: name, Kubeconfig: kubeconfig, Program: filepath.Join(root, "bin", "etcd"),
		EtcdConfigFile: filepath.Join(directory, "etcd.conf.yaml"), Directory: p.directory, ListenAddress: "127.0.0.1",
		ClientURL: p.clientURL, PeerURL: p.peerURL, StatusPort: p.statusPort,
		ClientTLS: &config.ClientTLS{
			CAFile: p.site.file("ca.crt"), ServerCertFile: p.site.file("tls.crt"), ServerKeyFile: p.site.file("tls.key"),
			CertFile: p.site.file("tls.crt"), KeyFile: p.site.file("tls.key"), ServerName: name + "-local",
		},
	}
	own.APIVersion, own.Kind = config.APIVersion, config.KindMember
	own.Backup = p.backup
	own.Heartbeat.Duration, own.DefragmentTimeout.Duration = time.Second, time.Minute
	path := filepath.Join(directory, "member.yaml")
	for file, content := range map[string]any{own.EtcdConfigFile: settings, path: own} {
		text, err := yaml.Marshal(content)
		kit.Must(p.site, err)
		kit.Must(p.site, os.WriteFile(file, text, 0o600))
	}
	return path
}

// start starts the member.
func (p *process) start() { p.startWith(p.site.kubeconfig) }

func (p *process) startWith(kubeconfig string) {
	p.site.Helper()
	path, err := memberBinary()
	kit.Must(p.site, err)
	p.command = exec.CommandContext(context.WithoutCancel(p.site.Context()), path, "--config", p.configure(kubeconfig), "--name", p.name)
	p.command.Stdout, p.command.Stderr = p.log, p.log
	p.command.WaitDelay = 10 * time.Second
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	kit.Must(p.site, p.command.Start())
}

// kill kills the program with SIGKILL. Its etcd ends with it.
func (p *process) kill() {
	if p.command == nil {
		return
	}
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
	p.command = nil
}

// stop terminates the program gracefully, as the kubelet does.
func (p *process) stop() {
	p.site.Helper()
	kit.Must(p.site, p.command.Process.Signal(syscall.SIGTERM))
	_ = p.command.Wait()
	p.command = nil
}

// lose removes the data of the member, as if it had a new volume.
func (p *process) lose() {
	p.site.Helper()
	kit.Must(p.site, os.RemoveAll(p.directory))
}

// ready returns why the member is not ready.
func (p *process) ready() string {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: p.site.clientTLS, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(p.site.Context(), http.MethodGet, p.readyURL, nil)
	kit.Must(p.site, err)
	response, err := client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	content, _ := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if response.StatusCode != http.StatusOK {
		return string(content)
	}
	return ""
}

func (p *process) eventuallyReady() {
	p.site.Helper()
	kit.Eventually(p.site, p.name+" is ready", p.ready)
}

// connect returns a client for members.
func (s *site) connect(members ...*process) *clientv3.Client {
	s.Helper()
	var endpoints []string
	for _, p := range members {
		endpoints = append(endpoints, p.clientURL)
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: s.clientTLS, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	kit.Must(s, err)
	s.Cleanup(func() { _ = c.Close() })
	return c
}
