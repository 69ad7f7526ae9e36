package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcdFlags is what the launcher sets of etcd's many settings.
type etcdFlags struct {
	dataDir, clientURL        string
	certFile, keyFile, caFile string
	unsafeNoFsync             bool
}

func parseEtcdFlags(args []string, stderr io.Writer) (etcdFlags, error) {
	var f etcdFlags
	set := flag.NewFlagSet("controlplane etcd", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&f.dataDir, "data-dir", "", "folder of the data (required)")
	set.StringVar(&f.clientURL, "listen-client-url", "", "https URL to serve clients on (required)")
	set.StringVar(&f.certFile, "cert-file", "", "serving certificate (required)")
	set.StringVar(&f.keyFile, "key-file", "", "key of the serving certificate (required)")
	set.StringVar(&f.caFile, "trusted-ca-file", "", "CA of the client certificates (required)")
	set.BoolVar(&f.unsafeNoFsync, "unsafe-no-fsync", false, "don't wait for the disk: faster, and data survive a crash of this process but not of the machine")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	missing := false
	set.VisitAll(func(fl *flag.Flag) { missing = missing || fl.Value.String() == "" })
	if missing {
		set.Usage()
		return f, errors.New("a required flag is missing")
	}
	return f, nil
}

// runEtcd serves a cluster of one member until SIGTERM or SIGINT.
func runEtcd(args []string, stderr io.Writer) int {
	flags, err := parseEtcdFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "etcd: %v\n", err)
		return 2
	}
	if err := serveEtcd(flags); err != nil {
		fmt.Fprintf(stderr, "etcd: %v\n", err)
		return 1
	}
	return 0
}

func serveEtcd(flags etcdFlags) error {
	clientURL, err := url.Parse(flags.clientURL)
	if err != nil {
		return fmt.Errorf("parse --listen-client-url: %w", err)
	}
	cfg := embed.NewConfig()
	cfg.Dir = flags.dataDir
	cfg.ListenClientUrls = []url.URL{*clientURL}
	cfg.AdvertiseClientUrls = cfg.ListenClientUrls
	// A single member has no peers to serve, hence no port for them.
	cfg.ListenPeerUrls = nil
	cfg.ClientTLSInfo.CertFile = flags.certFile
	cfg.ClientTLSInfo.KeyFile = flags.keyFile
	cfg.ClientTLSInfo.TrustedCAFile = flags.caFile
	cfg.ClientTLSInfo.ClientCertAuth = true
	cfg.UnsafeNoFsync = flags.unsafeNoFsync
	// The API server's watch cache needs to hear that nothing has happened.
	cfg.WatchProgressNotifyInterval = 5 * time.Second
	cfg.LogLevel = "warn"
	cfg.LogOutputs = []string{"stderr"}

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("start with data folder %s: %w", flags.dataDir, err)
	}
	defer server.Close()
	select {
	case <-stop:
		return nil
	case err := <-server.Err():
		return fmt.Errorf("serve on %s: %w", flags.clientURL, err)
	}
}
