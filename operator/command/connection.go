package command

import (
	"fmt"
	"io"

	"github.com/giantswarm/micrologger"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/operatorkit/operatorkit/operator/logging"
)

// connection is the API server that a command talks to.
type connection struct {
	config *rest.Config
	// namespace is that of the Pod or of the kubeconfig's context, or "default".
	namespace string
}

// connect finds the API server. It sends no request.
func (p *program) connect() (*connection, error) {
	if p.config.RESTConfig != nil && p.options.kubeconfig == "" && p.options.context == "" {
		config := rest.CopyConfig(p.config.RESTConfig)
		config.UserAgent = p.userAgent()
		return &connection{config: config, namespace: metav1.NamespaceDefault}, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = p.options.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: p.options.context}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w: give --kubeconfig, set KUBECONFIG, or run in a Pod", err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, fmt.Errorf("find the namespace of the kubeconfig's context: %w", err)
	}
	config.UserAgent = p.userAgent()
	return &connection{config: config, namespace: namespace}, nil
}

func (p *program) userAgent() string { return p.config.Name + "/" + p.config.Version }

// logForPeople has a command log as text, and only what is amiss, unless its flags or their variables say otherwise.
func (p *program) logForPeople(cmd *cobra.Command) {
	if !cmd.Flags().Changed("log-format") {
		p.options.logFormat = string(logging.FormatText)
	}
	if !cmd.Flags().Changed("log-level") {
		p.options.logLevel = string(logging.LevelWarning)
	}
}

// logger makes the logger, and has the libraries log there too, unless somebody else in the program uses them.
func (p *program) logger(w io.Writer) (micrologger.Logger, error) {
	logger, err := logging.New(logging.Config{
		Writer: w, Format: logging.Format(p.options.logFormat), Level: logging.Level(p.options.logLevel),
	})
	if err != nil {
		return nil, &usageError{fmt.Errorf("--log-format or --log-level: %w", err)}
	}
	if !p.config.KeepGlobalLoggers {
		logging.Capture(logger)
	}
	return logger, nil
}
