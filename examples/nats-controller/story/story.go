package story

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	gateways "github.com/operatorkit/operatorkit/examples/nats-controller"
	"github.com/operatorkit/operatorkit/examples/nats-controller/internal/selfsigned"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// tell tells the story on so many NATS servers.
func tell(ctx context.Context, d *demo.Demo, replicas int) error {
	w, err := newWorld(ctx, d, replicas)
	if err != nil {
		return err
	}
	for _, chapter := range []func(context.Context) error{
		w.createGateways, w.rotateCertificate, w.editRoute, w.editConfigMap, w.editRegistration, w.loseCertificate,
		w.deleteGateways, w.changeWhileStopped,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// names are the gateways, each of which has a certificate of its own name.
var names = []string{"shop", "blog", "docs", "wiki"}

func (w *world) createGateways(ctx context.Context) error {
	w.Step("starting the controller")
	w.Note("metrics are at   http://" + w.config.ListenAddress + "/metrics")
	if err := w.startController(); err != nil {
		return err
	}
	w.Step("creating four gateways and their certificates")
	for i, name := range names {
		certificate, err := selfsigned.New(name)
		if err != nil {
			return err
		}
		if err := w.certificates.Create(ctx, certificate); err != nil {
			return err
		}
		gateway := &gateways.Gateway{
			Meta: natsinformer.Meta{Name: name}, Certificate: name,
			Hosts: []string{name + ".example.com"}, Backend: fmt.Sprintf("10.0.0.%d:80", i+1),
		}
		if err := w.gateways.Create(ctx, gateway); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := w.Until(ctx, name+" has its route, its ConfigMap and its registration", w.isKept(name)); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) rotateCertificate(ctx context.Context) error {
	w.Step("rotating the certificate of shop, which the controller only reads")
	certificate, err := w.certificates.Get(ctx, "shop")
	if err != nil {
		return err
	}
	if err := selfsigned.Renew(certificate); err != nil {
		return err
	}
	if err := w.certificates.Update(ctx, certificate); err != nil {
		return err
	}
	return w.Until(ctx, "its ConfigMap has the new fingerprint", w.isKept("shop"))
}

func (w *world) editRoute(ctx context.Context) error {
	w.Step("editing the route of shop by hand")
	route, err := w.routes.Get(ctx, "shop.example.com")
	if err != nil {
		return err
	}
	route.Backend = "6.6.6.6:80"
	if err := w.routes.Update(ctx, route); err != nil {
		return err
	}
	return w.Until(ctx, "it is put right", w.isKept("shop"))
}

func (w *world) editConfigMap(ctx context.Context) error {
	w.Step("editing the ConfigMap of shop by hand")
	edit := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"backend":"6.6.6.6:80"}}`))
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = w.Namespace, "shop"
	if err := w.Client.Patch(ctx, cm, edit); err != nil {
		return err
	}
	return w.Until(ctx, "it is put right", w.isKept("shop"))
}

func (w *world) editRegistration(ctx context.Context) error {
	w.Step("editing the registration of shop by hand, which is noticed when the registry is polled")
	registration, err := w.registry.Get(ctx, "shop")
	if err != nil {
		return err
	}
	registration.Address = "6.6.6.6:80"
	if err := w.registry.Put(ctx, registration); err != nil {
		return err
	}
	return w.Until(ctx, "it is put right", w.isKept("shop"))
}

func (w *world) loseCertificate(ctx context.Context) error {
	w.Step("deleting the certificate of blog")
	certificate, err := w.certificates.Get(ctx, "blog")
	if err != nil {
		return err
	}
	if err := w.certificates.Delete(ctx, certificate); err != nil {
		return err
	}
	if err := w.Until(ctx, "blog says that it has none", w.says("blog", gateways.ReasonNoCertificate)); err != nil {
		return err
	}
	w.Step("giving blog a new one")
	if certificate, err = selfsigned.New("blog"); err != nil {
		return err
	}
	if err := w.certificates.Create(ctx, certificate); err != nil {
		return err
	}
	return w.Until(ctx, "blog serves with it", w.isKept("blog"))
}

func (w *world) deleteGateways(ctx context.Context) error {
	w.Step("deleting docs by request, as a controller or a user interface does")
	if err := w.gateways.RequestDeletion(ctx, "docs"); err != nil {
		return err
	}
	if err := w.Until(ctx, "it is gone, and so is all that was made for it", w.isGone("docs")); err != nil {
		return err
	}
	w.Step("deleting wiki at once, as nats kv del does")
	wiki, err := w.gateways.Get(ctx, "wiki")
	if err != nil {
		return err
	}
	if err := w.gateways.Delete(ctx, wiki); err != nil {
		return err
	}
	return w.Until(ctx, "all that was made for it is gone", w.isGone("wiki"))
}

func (w *world) changeWhileStopped(ctx context.Context) error {
	w.Step("stopping the controller; meanwhile shop moves, and blog is purged without a trace")
	if err := w.stop(); err != nil {
		return err
	}
	shop, err := w.gateways.Get(ctx, "shop")
	if err != nil {
		return err
	}
	shop.Backend = "10.0.1.1:80"
	if err := w.gateways.Update(ctx, shop); err != nil {
		return err
	}
	blog, err := w.gateways.Get(ctx, "blog")
	if err != nil {
		return err
	}
	if err := w.gateways.Purge(ctx, blog); err != nil {
		return err
	}
	preview, err := gateways.New(w.config)
	if err != nil {
		return err
	}
	err = w.Show("operator --plan says what it would do:", func(out io.Writer, color bool) error {
		return preview.Preview(ctx, out, plan.TextOptions{Color: color})
	})
	if err != nil {
		return err
	}
	w.Step("starting the controller again")
	if err := w.startController(); err != nil {
		return err
	}
	if err := w.Until(ctx, "shop has moved", w.isKept("shop")); err != nil {
		return err
	}
	return w.Until(ctx, "what is left of blog is collected", w.isGone("blog"))
}
