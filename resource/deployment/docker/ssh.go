package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	moby "github.com/moby/moby/client"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// sshDialer is for the socket of an engine on a machine that is reached by SSH, which carries one connection for all requests.
type sshDialer struct {
	address, socket string
	config          *ssh.ClientConfig
}

func newSSHDialer(e *Endpoint, u *url.URL) (dialer, error) {
	d := sshDialer{address: net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "22")), socket: cmp.Or(u.Path, defaultSocket)}
	switch {
	case u.Hostname() == "" || u.User.Username() == "":
		return nil, fmt.Errorf("host %s: after ssh:// comes a user, @ and a host", e.Host)
	case e.SSH == nil:
		return nil, fmt.Errorf("host %s: there is no SSH", e.Host)
	}
	signer, err := e.SSH.signer()
	if err != nil {
		return nil, fmt.Errorf("host %s: read SSH.Key: %w", e.Host, err)
	}
	check, err := e.SSH.knownHosts()
	if err != nil {
		return nil, fmt.Errorf("host %s: read SSH.KnownHosts: %w", e.Host, err)
	}
	algorithms := hostKeyAlgorithms(check, d.address)
	if len(algorithms) == 0 {
		return nil, fmt.Errorf("host %s: no key of it is in SSH.KnownHosts", e.Host)
	}
	d.config = &ssh.ClientConfig{
		User: u.User.Username(), Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: check, HostKeyAlgorithms: algorithms,
	}
	return d, nil
}

func (s *SSH) signer() (ssh.Signer, error) {
	if s.Passphrase != "" {
		return ssh.ParsePrivateKeyWithPassphrase([]byte(s.Key), []byte(s.Passphrase))
	}
	return ssh.ParsePrivateKey([]byte(s.Key))
}

// knownHosts reads the keys from the name of a pipe, because it is files that can be read, and there may be no place to write one.
func (s *SSH) knownHosts() (ssh.HostKeyCallback, error) {
	keys, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = keys.Close() }()
	go func() {
		// Who reads says what is wrong with it. The end of the reader ends this too.
		_, _ = write.Write(s.KnownHosts)
		_ = write.Close()
	}()
	name := fmt.Sprintf("/dev/fd/%d", keys.Fd())
	check, err := knownhosts.New(name)
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), name+":", "line "))
	}
	return check, nil
}

// noKey is a key that is not known, to find out which are.
type noKey struct{}

func (noKey) Type() string { return "none" }

func (noKey) Marshal() []byte { return nil }

func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("no key") }

// hostKeyAlgorithms returns the algorithms of the keys that are known of a host. The host has to choose among these, for it would
// choose one whose key may not be known.
func hostKeyAlgorithms(check ssh.HostKeyCallback, address string) []string {
	var unknown *knownhosts.KeyError
	if !errors.As(check(address, &net.TCPAddr{}, noKey{}), &unknown) {
		return nil
	}
	var algorithms []string
	for _, known := range unknown.Want {
		switch t := known.Key.Type(); t {
		case ssh.KeyAlgoRSA:
			algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		default:
			algorithms = append(algorithms, t)
		}
	}
	slices.Sort(algorithms)
	return slices.Compact(algorithms)
}

func (d sshDialer) open(ctx context.Context, option moby.Opt) (*moby.Client, func(), error) {
	dial := net.Dialer{KeepAlive: 15 * time.Second}
	raw, err := dial.DialContext(ctx, "tcp", d.address)
	if err != nil {
		return nil, nil, err
	}
	// The handshake knows no context.
	shaken := context.AfterFunc(ctx, func() { _ = raw.Close() })
	conn, channels, requests, err := ssh.NewClientConn(raw, d.address, d.config)
	shaken()
	if err != nil {
		_ = raw.Close()
		return nil, nil, fmt.Errorf("log in to %s as %s: %w", d.address, d.config.User, err)
	}
	client := ssh.NewClient(conn, channels, requests)
	// This says more of what is wrong than a request would.
	tried, err := client.DialContext(ctx, "unix", d.socket)
	if err != nil {
		_ = client.Close()
		return nil, nil, fmt.Errorf("open %s: %w", d.socket, err)
	}
	_ = tried.Close()
	engine, hangUp, err := engineOver(&http.Transport{}, option, moby.WithHost("unix://"+d.socket), moby.WithDialContext(
		func(ctx context.Context, _, _ string) (net.Conn, error) {
			return client.DialContext(ctx, "unix", d.socket)
		}))
	if err != nil {
		_ = client.Close()
		return nil, nil, err
	}
	return engine, func() {
		hangUp()
		_ = client.Close()
	}, nil
}
